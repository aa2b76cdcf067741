# SPDX-License-Identifier: Apache-2.0
# A pod that means harm, from inside its container and by what its owner may write to the API server; read by e2e.sh. It is
# thirty of cases_slices.sh, as root with a container's usual capabilities; sixty is its neighbour.
# shellcheck shell=bash disable=SC2154

# Each line is a way to more, or to a neighbour's loss, that must fail: it prints what has gone well. Read by sh in the container.
attempts() {
    cat <<'END'
region=$CUDA_DEVICE_MEMORY_SHARED_CACHE
hook=${region%/*}
own=$(sed -n 's/^slice //p' /etc/vgpu/share)
record=$(ls -d /run/vgpu-turns/*/$own)
other=$(ls -d /run/vgpu-turns/*/* | grep -v "$own" | head -n 1)
[ -n "$own" ] && [ -n "$record" ] && [ -n "$other" ] || echo "nothing to attack: $own, $record, $other"
try() {
    sh -c "$2" >/dev/null 2>&1 && echo "it could: $1"
}
export region hook own record other
try "write its share" 'echo x >>/etc/vgpu/share'
try "remove its share" 'rm /etc/vgpu/share'
try "put a share beside it" 'echo x >/etc/vgpu/new && mv /etc/vgpu/new /etc/vgpu/share'
try "empty the list of what is preloaded" ': >/etc/ld.so.preload'
try "remove the list" 'rm /etc/ld.so.preload'
try "replace the list" ': >/etc/ld.so.new && mv /etc/ld.so.new /etc/ld.so.preload'
try "take the list's mount away" 'umount -l /etc/ld.so.preload'
try "mount over the list" 'mount --bind /dev/null /etc/ld.so.preload'
try "make its share writable" 'mount -o remount,rw,bind /etc/vgpu'
try "write the library" ': >>$hook/libvgpu.so'
try "remove the library" 'rm $hook/libvgpu.so'
try "remove its region" 'rm $region'
try "rename its region" 'mv $region $region.old'
try "make a second region" ': >$hook/second.cache'
try "make a folder beside it" 'mkdir $hook/containers'
try "link to its region" 'ln $region $hook/second.cache || ln -s $region $hook/second.cache'
try "write a neighbour's turn record" 'echo x >$other'
try "cut a neighbour's turn record" 'truncate -s 0 $other'
try "remove a neighbour's turn record" 'rm $other'
try "remove its own turn record" 'rm $record'
try "make a turn record" 'echo x >/run/vgpu-turns/new'
try "make one of a device" 'echo x >${record%/*}/new'
try "fill the lock's folder" 'echo x >/tmp/vgpulock/x'
for file in $(find / -xdev -name '*.cache' 2>/dev/null; find $hook -name '*.cache'); do
    [ "$file" = "$region" ] || echo "it sees $file"
done
END
}

nothing_can_be_changed_from_inside() {
    local text
    text=$(attempts | kubectl exec -i thirty -- sh) || return 1
    [ -z "$text" ] && has_room thirty 9 && has_room sixty 17 && return
    echo "$text"
    return 1
}

# Each of these asks for more; the share is the administrator's. Another share than that is none, and all is refused.
its_environment_gives_no_more() {
    local text
    text=$(in_pod thirty env CUDA_DEVICE_MEMORY_LIMIT_0=100000m CUDA_DEVICE_MEMORY_LIMIT=100000m \
        CUDA_DISABLE_CONTROL=true LD_PRELOAD= CUDA_DEVICE_MEMORY_SHARED_CACHE=/tmp/own.cache NVIDIA_VISIBLE_DEVICES=all \
        tenant && in_pod thirty env VGPU_SHARE=/tmp/none tenant 2>&1)
    echo "$text"
    [[ $text == *"took 9 x 256 MiB"*"device memory is refused"* ]] && share_as_told env CUDA_DEVICE_SM_LIMIT=100 \
        CUDA_DEVICE_SM_LIMIT_0=0 GPU_CORE_UTILIZATION_POLICY=disable VGPU_COMPUTE_BURST_MS=1000 CUDA_TASK_PRIORITY=0
}

# sixty_beside [COMMAND...]: what sixty gets beside thirty's program, in percent; COMMAND runs that.
sixty_beside() {
    local got
    read -r -a got <<<"$(loads "$@")"
    echo "${got[1]:-0}"
}

# It may write its own record. sixty has what it has beside one that writes as much elsewhere, before and after, as far as
# the machine is steady: the writing takes the processor's time.
a_broken_record_costs_no_neighbour() {
    local try
    for try in 1 2 3; do
        is_as_well_beside_a_broken_record && return
    done
    return 1
}

# sixty_beside_writer FILE: FILE is a word of the container's shell.
sixty_beside_writer() {
    sixty_beside sh -c "file=$1"'; for i in $(seq 140); do
            head -c 4096 /dev/urandom | dd of=$file conv=notrunc 2>/dev/null; sleep 0.05
        done & exec "$@"' sh
}

is_as_well_beside_a_broken_record() {
    local before beside after
    before=$(sixty_beside_writer /tmp/nothing)
    # shellcheck disable=SC2016 # the container's own
    beside=$(sixty_beside_writer '$(ls -d /run/vgpu-turns/*/$(sed -n "s/^slice //p" /etc/vgpu/share))')
    after=$(sixty_beside_writer /tmp/nothing)
    figure "$beside %, beside one that writes elsewhere $before and $after"
    [ "$before" -ge 42 ] && [ "$after" -ge 42 ] && [ "$beside" -ge $(((before < after ? before : after) - 2)) ]
}

# Its programs are refused, or held to the same; the neighbour's books are others.
a_broken_region_is_no_way_out() {
    local text
    # shellcheck disable=SC2016
    in_pod thirty sh -c 'head -c 2000000 /dev/urandom | dd of=$CUDA_DEVICE_MEMORY_SHARED_CACHE conv=notrunc 2>/dev/null' ||
        return 1
    text=$(in_pod thirty tenant 2>&1)
    echo "$text"
    [[ $text != *" took "[1-9][0-9]* ]] && has_room sixty 17
}

# The plugin's next start makes it good; the container has mounted the old one until it starts again.
what_it_broke_is_made_anew() {
    restart_plugin && in_pod thirty touch /tmp/end && runs thirty 1 && has_room thirty 9
}

# Its owner writes that it may have all of a card. It was admitted with less.
annotations_of_one_that_runs_change_nothing() {
    merge "$(pod_path thirty)" "{\"metadata\": {\"annotations\": {\"hami.io/bind-phase\": \"allocating\",
        \"hami.io/vgpu-devices-to-allocate\": \"$(slot 0 100000 0);\", \"hami.io/vgpu-devices-allocated\": \"$(slot 0 100000 0);\"}}}" &&
        restart_plugin && has_room thirty 9
}

# It claims a reservation, and is asked for before the pod that the scheduler has bound.
a_forged_reservation_gets_nothing() {
    kill -STOP "$plugin" && pod forger "$(slot 0 100000 0);" "$(container main 1 tenant)" | create &&
        within 10 kubelet_waits && start honest "$(slot 0 1000 0);" "$(container main 1 tenant)" || return 1
    kill -CONT "$plugin"
    is_refused forger "no pod that waits" && phase_is honest Succeeded && says honest main "took 1 x 256 MiB" &&
        lock_is_released && gone forger honest
}

# What a pod mounts comes after what the plugin mounts: each of these would be a share, a list or a region of its own.
a_volume_over_its_limits_is_refused() {
    local at hook
    # shellcheck disable=SC2016
    hook=$(in_pod thirty sh -c 'echo ${CUDA_DEVICE_MEMORY_SHARED_CACHE%/*}') || return 1
    for at in /etc/vgpu /etc/ld.so.preload "$hook" /etc; do
        start cover "$(slot 0 1000 0);" "$(container main 1 true | sed "s|mountPath: /sim|mountPath: $at|")" &&
            is_refused cover "of its own at $at" && gone cover || return 1
    done
    start cover "$(slot 0 1000 0);" "$(container main 1 true "    terminationMessagePath: /etc/vgpu/share")" &&
        is_refused cover "of its own at /etc/vgpu/share" && gone cover
}

hostile_cases() {
    check "nothing of a slice can be changed from inside" nothing_can_be_changed_from_inside
    check "its environment gives a pod no more" its_environment_gives_no_more
    check "a broken turn record costs no neighbour" a_broken_record_costs_no_neighbour
    check "a broken region is no way out" a_broken_region_is_no_way_out
    check "what a pod broke is made anew" what_it_broke_is_made_anew
    check "annotations of a pod that runs change nothing" annotations_of_one_that_runs_change_nothing
    check "a forged reservation gets nothing" a_forged_reservation_gets_nothing
    check "a volume over what limits are made of is refused" a_volume_over_its_limits_is_refused
}
