# SPDX-License-Identifier: Apache-2.0
# Two pods train side by side in slices of one card, which they got by asking for no more than that; read by e2e.sh.
# CLUSTER_CARD=real: on this machine's own first card, with its driver and its PyTorch. Else on the simulated node's, with kernels
# in the place of a network's.
# shellcheck shell=bash disable=SC2154
card_memory_mib=8192
card_folder=$CLUSTER_FOLDER/sim

is_real() {
    [ "${CLUSTER_CARD:-}" = real ]
}

# What programs of CUDA's load, here and in the pods.
driver_libraries() {
    is_real && echo "${LD_LIBRARY_PATH:-}" || echo "$build/sim/cuda:$build/sim/nvml"
}

# become COMMAND...: on the node, in no slice.
become() {
    exec env LD_LIBRARY_PATH="$(driver_libraries)" VGPU_SIM_STATE="$card_folder/machine" VGPU_SIM_BOARD=h200x2 "$@"
}

# The machine's programs and libraries are the pods', too; an image with PyTorch would have gigabytes.
make_host_image() {
    local archive=$CLUSTER_FOLDER/images/host.tar
    python3 "$here/image.py" "$archive" local.test/host:1 /lib=usr/lib /lib64=usr/lib64 &&
        ctr -n k8s.io images import "$archive" && mkdir -p "$card_folder" &&
        cp "$here/../gpu/programs/train.py" "$card_folder/"
}

# As nvidia-smi has it, and the kubelet.
the_card_is_registered() {
    local said
    is_real || make_driver_root || return
    restart_plugin --pass-device-specs=true --nvidia-dev-root "$(is_real && echo / || echo "$CLUSTER_FOLDER/driver")" && slices_are $(($(cards) * 10)) 20 || return
    chmod -R a+rwX "$card_folder"
    said=$(of_node '.metadata.annotations["hami.io/node-nvidia-register"]' | jq -r '.[0] | "\(.id), \(.type), \(.devmem)"')
    figure "$said MiB, $(of_node '.status.allocatable["nvidia.com/gpu"]') slices"
    ! is_real || [ "$said" = "$(nvidia-smi -i 0 --query-gpu=uuid,name,memory.total --format=csv,noheader,nounits |
        sed 's/, NVIDIA /, NVIDIA /')" ]
}

cards() {
    is_real && nvidia-smi -L | wc -l || echo 2
}

# training NAME CORES [serve]: the slice's name is the pod's; nothing else says where it goes. Variables: policy, of
# its cores; priority.
training() {
    local folder more= mounts=
    for folder in /usr /opt $(is_real || echo "$build"); do
        more="$more
  - {name: v${folder//[^a-z]/-}, hostPath: {path: $folder}}" mounts="$mounts
    - {name: v${folder//[^a-z]/-}, mountPath: $folder, readOnly: true}"
    done
    cat <<END
apiVersion: v1
kind: Pod
metadata: {name: $1, annotations: {nvidia.com/use-gpuuuid: $(gpu 0)}}
spec:
  restartPolicy: Always
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  volumes:$more
  - {name: folder, hostPath: {path: $card_folder}}
  containers:
  - name: main
    image: local.test/host:1
    imagePullPolicy: Never
    command: [python3, /train/train.py, $1, /train${3:+, $3}]
    env:
    - {name: GPU_CORE_UTILIZATION_POLICY, value: "${policy:-default}"}
    - {name: PATH, value: "$PATH:/bin"}
    - {name: HOME, value: /tmp}
    - {name: LD_LIBRARY_PATH, value: "$(driver_libraries)"}
    - {name: VGPU_SIM_STATE, value: /train/machine}
    - {name: VGPU_SIM_BOARD, value: h200x2}
    resources:
      requests: {cpu: 500m} # a machine that is busy otherwise gives nothing to those that ask for nothing
      limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: $card_memory_mib, nvidia.com/gpucores: $2${priority:+, nvidia.com/priority: $priority}}
    volumeMounts:$mounts
    - {name: folder, mountPath: /train}
END
}

# last_line NAME [OPTION...]: what it has said last.
last_line() {
    kubectl logs "$1" --tail 1 "${@:2}" 2>/dev/null
}

trains() {
    [ "$(last_line "$1" | jq -r '.steps // 0' 2>/dev/null)" -gt "${2:-0}" ] 2>/dev/null
}

# pause NAME...: these do, the others go on.
pause() {
    rm -f "$card_folder"/pause-*
    for name in "$@"; do
        touch "$card_folder/pause-$name"
    done
    sleep 2
}

# steps_per_s NOW COMMAND...: of the program whose lines COMMAND prints, from the last line before the seconds that end at NOW to
# the last one in them. One that has said nothing for three of them waits for the card, and does nothing.
steps_per_s() {
    local now=$1
    shift
    "$@" | jq -rs --argjson now "$now" --argjson seconds "$card_seconds" 'map(select(.at and .at <= $now)) |
        (map(select(.at <= $now - $seconds)) | .[-1] // {at: $now, steps: 0}) as $first | (.[-1] // $first) as $last |
        (if $last.at < $now - 3 then $now else $last.at end) as $until |
        if $until > $first.at then ($last.steps - $first.steps) / ($until - $first.at) else 0 end | . * 10 | round / 10'
}

# rate_of NAME [NOW]
rate_of() {
    steps_per_s "${2:-$(date +%s.%N)}" kubectl logs "$1" --tail 200
}

# percent PART OF WHOLE
percent() {
    jq -n "$1 / $3 * 1000 | round / 10"
}

# What a program without a slice does, with the card for itself.
the_card_alone() {
    local program
    become python3 "$card_folder/train.py" node "$card_folder" >"$CLUSTER_FOLDER/log/alone" 2>&1 &
    program=$!
    within 60 grep -q '"steps": [1-9]' "$CLUSTER_FOLDER/log/alone"
    sleep $((card_seconds + 2))
    kill -KILL $program
    wait $program
    alone=$(steps_per_s "$(grep at "$CLUSTER_FOLDER/log/alone" | tail -n 1 | jq .at)" cat "$CLUSTER_FOLDER/log/alone")
    figure "$alone steps/s; $(head -n 1 "$CLUSTER_FOLDER/log/alone"); $(tail -n 1 "$CLUSTER_FOLDER/log/alone")"
    jq -e -n "$alone > 0"
}

both_train() {
    training thirty 30 | kubectl apply -f - && training sixty 60 | kubectl apply -f - &&
        phase_is thirty Running 60 && phase_is sixty Running 60 && within 90 trains thirty && within 90 trains sixty &&
        is_bound thirty && is_bound sixty && lock_is_released ||
        { explain thirty; explain sixty; return 1; }
    figure "$(of_pod thirty '.metadata.annotations["hami.io/vgpu-devices-allocated"]')," \
        "$(of_pod sixty '.metadata.annotations["hami.io/vgpu-devices-allocated"]')"
}

is_within() {
    jq -e -n "$1 >= $2 and $1 <= $3" >/dev/null
}

# one_trains NAME PAUSED LEAST MOST: in percent of the card's own rate.
one_trains() {
    local rate part
    pause "$2"
    sleep $card_seconds
    rate=$(rate_of "$1")
    part=$(percent "$rate" of "$alone")
    figure "$rate steps/s, $part %"
    is_within "$part" "$3" "$4"
}

both_have_their_shares() {
    local first second now
    pause
    sleep $((card_seconds + 1))
    now=$(date +%s.%N)
    first=$(rate_of thirty "$now") second=$(rate_of sixty "$now")
    figure "$first and $second steps/s, $(percent "$first" of "$alone") and $(percent "$second" of "$alone") %"
    is_within "$(percent "$first" of "$alone")" $card_least 40 && is_within "$(percent "$second" of "$alone")" $((2 * card_least)) 75
}

# The slice holds what trains in it, too.
more_is_refused() {
    local text code=0
    text=$(timeout 60 kubectl exec "$1" -- python3 /train/train.py fill) || code=$?
    figure "$text"
    [ $code = 0 ] && is_within "$(jq .mib <<<"$text")" 1024 $((card_memory_mib - 256))
}

# shows_slice NAME MIB [LOADER]: the program nvidia-smi does, by LOADER in the place of its own.
shows_slice() {
    local text
    # shellcheck disable=SC2016 # the container's own
    text=$(in_pod "$1" sh -c "exec ${3:-} "'$(command -v nvidia-smi)' 2>&1)
    echo "$text" | tee -a "$CLUSTER_FOLDER/log/smi-$1"
    figure "${3:+by $3 }$(grep -o '[0-9]*MiB / *[0-9]*MiB' <<<"$text" | head -n 1)"
    [[ $text == *" $2MiB"* ]]
}

# nvidia-smi may have a loader of its own, which does not know of /etc/ld.so.preload.
nvidia_smi_shows_the_slice() {
    is_real || return 77
    shows_slice "$1" "${2:-$card_memory_mib}" || shows_slice "$1" "${2:-$card_memory_mib}" /lib64/ld-linux-x86-64.so.2
}

# What the driver says of the programs of the pods, from outside.
the_driver_agrees() {
    local used
    is_real || return 77
    used=$(nvidia-smi --query-compute-apps=used_memory --format=csv,noheader,nounits)
    figure "$(tr '\n' ' ' <<<"$used")MiB"
    [ "$(wc -l <<<"$used")" = 2 ] && awk -v most=$card_memory_mib '$1 > most { bad = 1 } END { exit bad }' <<<"$used"
}

# uid NAME, of its pod.
uid() {
    of_pod "$1" .metadata.uid
}

# Of the process that trains: it is the only one called so in its pod.
pid_of() {
    local of pid
    of=$(uid "$1")
    for pid in /proc/[0-9]*; do
        if grep -q "${of//-/.}" "$pid/cgroup" 2>/dev/null && grep -q train.py "$pid/cmdline" 2>/dev/null; then
            echo "${pid#/proc/}"
            return
        fi
    done
    return 1
}

# The kubelet starts it again, and does not ask the plugin.
one_is_killed() {
    local given before known other
    given=$(plugin_says "slices are handed out") before=$(restarts thirty) known=$(restarts sixty)
    other=$(last_line sixty | jq .steps)
    kill -KILL "$(pid_of thirty)" && runs thirty $((before + 1)) && within 90 trains thirty && trains sixty "$other" || return
    [ "$(plugin_says "slices are handed out")" = "$given" ] && [ "$(restarts sixty)" = "$known" ]
}

slices_of_node() {
    (become VGPU_STATE="$CLUSTER_FOLDER/state/shares" "$build/src/cli/vgpu" "$@")
}

# resize NAME MIB CORES: from the node, while it trains.
one_is_resized() {
    local began=$SECONDS
    slices_of_node set "$(uid "$1")_main" --memory "$2m" --cores "$3" --cap "$3" || return
    figure "set in $((SECONDS - began)) s"
    sleep 2 # it keeps to it within a tenth of a second, and is told to pause then
    pause "$1"
    nvidia_smi_shows_the_slice "$1" "$2" || [ $? = 77 ] || return
    card_memory_mib=$2 more_is_refused "$1"
}

# Their files stay for some minutes, for a kubelet that has not asked yet.
both_go() {
    kubectl delete pod thirty sixty --timeout=60s && lock_is_released && within 10 the_card_is_free
}

the_card_is_free() {
    ! find /sys/fs/cgroup -type d -path '*kubepods*/pod*' 2>/dev/null | grep -q . || return
    ! is_real || [ -z "$(nvidia-smi --query-compute-apps=pid --format=csv,noheader)" ]
}

card_cases() {
    card_seconds=6 card_least=24
    check "an image for the machine's own programs is made" make_host_image || return
    check "the card is registered as it is" the_card_is_registered || return
    check "the scheduler, its webhook and kube-scheduler are ready" bring_scheduler_up || return
    check "without a slice, the card for itself" the_card_alone || return
    check "two pods that only ask for 8 GiB, 30 and 60 % of a card train" both_train || return
    check "both are beside each other" both_have_their_shares
    check "30 % while the other pauses: it may have the rest, too" one_trains thirty sixty $card_least 105
    check "60 % while the other pauses" one_trains sixty thirty $((2 * card_least)) 105
    pause
    check "nvidia-smi shows 30 % its slice" nvidia_smi_shows_the_slice thirty
    check "nvidia-smi shows 60 % its slice" nvidia_smi_shows_the_slice sixty
    check "the driver says the same from outside" the_driver_agrees
    check "30 % is refused beyond 8 GiB" more_is_refused thirty
    check "60 % is refused beyond 8 GiB" more_is_refused sixty
    check "one that is killed trains again in its slice, the other goes on" one_is_killed
    check "its slice is what it was" more_is_refused thirty
    check "both are beside each other again" both_have_their_shares
    check "one is resized to 4 GiB and 10 % while it trains" one_is_resized thirty 4096 10
    check "10 % beside 60 %" one_trains thirty nobody 7 14
    check "both are deleted, and nothing is left" both_go
    check "the scheduler goes" leave_the_scheduler
}
