# SPDX-License-Identifier: Apache-2.0
# Minutes on one card, in parts of the same length: a training pod by itself, an inference pod beside it, the training pod
# resized, one of a higher priority, and without that again. Each second what the monitor tells is compared with what the
# driver tells of processes; read by e2e.sh. CLUSTER_CARD=real: as cases_card.sh has it, and five minutes long. MINUTES_FOLDER:
# where what was recorded stays.
# shellcheck shell=bash disable=SC2154
minutes_folder=${MINUTES_FOLDER:-$CLUSTER_FOLDER/log/minutes}

# part NAME: it begins.
part() {
    jq -cn --arg name "$1" '{at: now, part: $name}' >>"$minutes_folder/parts"
}

part_passes() {
    sleep "$minutes_part_s"
}

driver_tells() {
    is_real && echo nvidia-smi || echo "$build/sim/tool/vgpu-sim smi"
}

# What is read each second, until it is ended.
recording_begins() {
    mkdir -p "$minutes_folder"
    become python3 "$here/minutes.py" record "$minutes_folder" "http://127.0.0.1:$monitor_port/metrics" "$(gpu 0)" "$(driver_tells)" \
        >"$minutes_folder/said" 2>&1 &
    recorder=$!
    within 5 test -s "$minutes_folder/samples" || { cat "$minutes_folder/said"; return 1; }
}

recording_ends() {
    local name
    part end
    kill "$recorder" 2>/dev/null
    wait "$recorder"
    recorder=
    for name in training inference; do
        kubectl logs "$name" >"$minutes_folder/$name" || return
    done
    ! grep . "$minutes_folder/said"
}

# runs_as NAME CORES [KIND]
runs_as() {
    training "$@" | kubectl apply -f - && phase_is "$1" Running 60 && within 90 has_begun "$1" || { explain "$1"; return 1; }
}

has_begun() {
    [ -n "$(last_line "$1" | jq '.at // empty' 2>/dev/null)" ]
}

the_training_pod_is_alone() {
    policy=force runs_as training 60 && within 90 trains training && recording_begins && part alone && part_passes
}

an_inference_pod_comes() {
    runs_as inference 30 serve && part both && part_passes
}

the_training_pod_is_resized() {
    wish training '{"main": {"gpumem": 6144, "gpucores": 30}}' && within 10 is_resized && part resized && part_passes
}

is_resized() {
    annotation training vgpu-devices-allocated | grep -q ",6144,30:"
}

one_of_a_higher_priority_comes() {
    priority=0 runs_as urgent 10 && within 90 trains urgent && part urgent && part_passes
}

the_other_goes_on() {
    kubectl logs urgent >"$minutes_folder/urgent" && kubectl delete pod urgent --timeout=60s && part after && part_passes
}

# judge WHAT: prints figures, and what is not as it should be.
judge() {
    local said code=0
    said=$(python3 "$here/minutes.py" judge "$minutes_folder" "$1" "$alone") || code=$?
    figure "$said"
    return $code
}

stop_recording() {
    [ -z "${recorder:-}" ] || kill "$recorder"
}

minutes_cases() {
    minutes_part_s=$(is_real && echo 60 || echo 20) card_seconds=6 recorder=
    check "an image for the machine's own programs is made" make_host_image || return
    check "the card is registered as it is" the_card_is_registered || return
    check "the scheduler, its webhook and kube-scheduler are ready" bring_scheduler_up || return
    check "the monitor is ready" the_monitor_is_ready || return
    check "without a slice, the card for itself" the_card_alone || return
    pause
    check "a training pod of 60 % is alone for $minutes_part_s s" the_training_pod_is_alone || return
    check "an inference pod of 30 % is beside it" an_inference_pod_comes || return
    check "the training pod is resized to 30 % and 6 GiB" the_training_pod_is_resized || return
    check "a pod of a higher priority goes before both" one_of_a_higher_priority_comes || return
    check "it goes, and they go on" the_other_goes_on && check "all was recorded" recording_ends || return
    check "each had its share in each part" judge shares
    check "the monitor told what the driver tells, at each second" judge told
    check "no slice had more memory than its quota" judge quotas
    gone training inference
    check "the monitor goes" stop_monitor
    check "the scheduler goes" leave_the_scheduler
}
