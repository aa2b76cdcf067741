# SPDX-License-Identifier: Apache-2.0
# Random pods and faults for MINUTES on the nodes of cases_day.sh, from SEED; read by e2e.sh. SOAK_REPORT is a file for the result.
# shellcheck shell=bash disable=SC2154

random_pods_and_faults() {
    python3 "$here/soak.py" "$build" "${MINUTES:-30}" "${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}" ${SOAK_REPORT:+"$SOAK_REPORT"} | tee /dev/fd/5
    return "${PIPESTATUS[0]}"
}

soak_cases() {
    split=10
    check "three nodes with GPUs of different kinds are there" three_nodes_are_there || return
    step "all of it is installed on them" everything_is_installed || return
    exec 5>&1
    check "random pods and faults leave all accounts in agreement" random_pods_and_faults
    exec 5>&-
    check "nothing is left after helm uninstall" nothing_is_left
}
