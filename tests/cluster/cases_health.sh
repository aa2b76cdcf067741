# SPDX-License-Identifier: Apache-2.0
# Devices fail and come back; read by e2e.sh.
# shellcheck shell=bash disable=SC2154

registered_healthy() {
    [ "$(of_node '.metadata.annotations["hami.io/node-nvidia-register"]' | jq -c '[.[].health == true]')" = "$1" ]
}

# What is reserved on it is refused; what runs on the other goes on.
a_lost_device_is_not_handed_out() {
    simulate card lose --device 1 && slices_are 10 20 && within 30 registered_healthy "[true,false]" &&
        start lost "$(slot 1 1000 0);" "$(container main 1 tenant)" && is_refused lost "" &&
        lock_is_released && gone lost && simulate card return --device 1 && slices_are 20 20 &&
        within 30 registered_healthy "[true,true]"
}

a_device_that_reports_a_failure_is_not_handed_out() {
    simulate event xid 79 --device 0 && slices_are 10 20 && simulate event xid 31 --device 1 && sleep 1 && have_slices 10 &&
        simulate driver stop && slices_are 0 20 && simulate driver start && slices_are 20 20
}

health_cases() {
    check "a lost device is handed out when it is there again" a_lost_device_is_not_handed_out
    check "a device that reports a failure is handed out when its driver was restarted" \
        a_device_that_reports_a_failure_is_not_handed_out
}
