# SPDX-License-Identifier: Apache-2.0
# Pods that only say what they want: webhook, kube-scheduler, vgpu-scheduler, kubelet and device plugin do the rest;
# read by e2e.sh.
# shellcheck shell=bash disable=SC2154
. "$here/extender.sh"
scheduler=
scheduler_port=9443
trusted=admin,system:serviceaccount:kube-system:vgpu-scheduler # the first stands for the device plugin

configure_webhook() {
    kubectl apply -f - <<END
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: vgpu-scheduler}
webhooks:
- name: vgpu.hami.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  objectSelector: {matchExpressions: [{key: hami.io/webhook, operator: NotIn, values: [ignore]}]}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  clientConfig: {url: "https://127.0.0.1:$scheduler_port/webhook"}
- name: guard.vgpu.hami.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore # else no pod could be changed while no replica is there
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods]}]
  clientConfig: {url: "https://127.0.0.1:$scheduler_port/webhook"}
- name: new.guard.vgpu.hami.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  matchConditions:
  - name: has-annotations
    expression: has(object.metadata.annotations) && object.metadata.annotations.exists(k, k.startsWith('hami.io/') || k.startsWith('cantaloupe.io/'))
  clientConfig: {url: "https://127.0.0.1:$scheduler_port/guard"}
END
}

# What the scheduler has told the API server to trust, for kube-scheduler and for these cases.
take_authority() {
    api GET /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/vgpu-scheduler |
        jq -r '.webhooks[0].clientConfig.caBundle // empty' | base64 -d >"$CLUSTER_FOLDER/webhook.crt" &&
        [ -s "$CLUSTER_FOLDER/webhook.crt" ]
}

# scheduler_asks PATH: what vgpu-scheduler answers.
scheduler_asks() {
    python3 - "$CLUSTER_FOLDER/webhook.crt" "https://127.0.0.1:$scheduler_port$1" <<'END'
import ssl, sys, urllib.request
print(urllib.request.urlopen(sys.argv[2], context=ssl.create_default_context(cafile=sys.argv[1]), timeout=5).status)
END
}

# As in its pod: a user without a name or a capability, and no file that can be written.
as_in_a_pod() {
    exec unshare --mount sh -c 'mount --make-rprivate / && mount -o remount,bind,ro / && exec "$@"' sh \
        setpriv --reuid 65532 --regid 65532 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all "$@"
}

is_scheduler_ready() {
    [ "$(scheduler_asks /readyz 2>/dev/null)" = 200 ]
}

start_scheduler() {
    KUBECONFIG=$CLUSTER_FOLDER/vgpu-scheduler.kubeconfig as_in_a_pod "$build/src/scheduler/vgpu-scheduler" \
        --http_bind "127.0.0.1:$scheduler_port" --webhook-secret kube-system/vgpu-scheduler \
        --webhook-configuration vgpu-scheduler --scheduler-name hami-scheduler \
        --trusted-users "$trusted" --metrics-bind-address 127.0.0.1:9395 >>"$CLUSTER_FOLDER/log/vgpu-scheduler" 2>&1 &
    scheduler=$!
    within 30 take_authority && within 30 is_scheduler_ready && return
    tail -n 20 "$CLUSTER_FOLDER/log/vgpu-scheduler"
    return 1
}

stop_scheduler() {
    [ -n "$scheduler" ] || return 0
    kill "-${1:-TERM}" "$scheduler"
    wait "$scheduler"
    scheduler=
}

is_without_rights() {
    grep -q "^CapBnd:.0*$" "/proc/$scheduler/status" && grep -q "^NoNewPrivs:.1$" "/proc/$scheduler/status" &&
        grep -q "^Uid:.65532" "/proc/$scheduler/status" && grep -q "^[0-9 :/]* / / ro" "/proc/$scheduler/mountinfo"
}

bring_scheduler_up() {
    [ -x "$build/src/scheduler/vgpu-scheduler" ] || return 77
    (
        folder=$CLUSTER_FOLDER
        . "$here/configure.sh"
        kubeconfig vgpu-scheduler /CN=system:serviceaccount:kube-system:vgpu-scheduler
    ) && chmod o+x "$CLUSTER_FOLDER" "$CLUSTER_FOLDER/keys" && chmod o+r "$CLUSTER_FOLDER/keys/vgpu-scheduler.key" &&
        kubectl apply -f "$here/../../deploy/scheduler-rbac.yaml" && configure_webhook && start_scheduler &&
        is_without_rights && configure_kube_scheduler "$CLUSTER_FOLDER/webhook.crt" "$scheduler_port"
}

the_scheduler_is_ready() {
    [ -n "$plugin" ] || { the_kubelet_has_slices && make_tenant_image; } || return
    gone thirty sixty # which have a part of a device that is wanted whole
    bring_scheduler_up
}

# asking NAME LIMITS COMMAND: nothing else says how it gets its slices. Variables: class, its priority class; notes, its
# annotations.
asking() {
    cat <<END
apiVersion: v1
kind: Pod
metadata: {name: $1, annotations: {${notes:-}}}
spec:
  priorityClassName: ${class:-""}
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  volumes: [{name: sim, hostPath: {path: $CLUSTER_FOLDER/sim}}]
  containers:
$(container main 0 "$3")
    resources: {limits: {$2}}
END
}

apply_asking() {
    asking "$@" | kubectl apply -f -
}

# What went wrong may stand in any of these.
explain() {
    kubectl describe "pod/$1" | tail -n 12
    tail -q -n 8 "$CLUSTER_FOLDER/log/vgpu-scheduler" "$CLUSTER_FOLDER/log/plugin"
    kubectl logs "$1" | tail -n 8
    return 1
}

# has_said NAME TEXT: no pipe, whose writer would be ended by a reader that has seen enough.
has_said() {
    grep -q -- "$2" <<<"$(kubectl logs "$1")"
}

was_preempted() {
    kubectl get events --field-selector reason=Preempted -o jsonpath='{.items[*].involvedObject.name}' | grep -x "$1"
}

limits="nvidia.com/gpu: 1, nvidia.com/gpumem: 3000, nvidia.com/gpucores: 30"

# 3000 MiB: a context of the simulated driver and nine blocks of 256 MiB.
a_pod_that_only_asks_gets_its_slice() {
    apply_asking asks "$limits" tenant && phase_is asks Succeeded && within 20 has_said asks "took 9 x 256 MiB" &&
        [ "$(kubectl get pod asks -o jsonpath='{.spec.schedulerName}')" = hami-scheduler ] &&
        [ "$(kubectl get pod asks -o jsonpath='{.metadata.labels.hami\.io/vgpu-node}')" = $node_name ] &&
        within 20 is_bound asks && lock_is_released && gone asks || explain asks
}

# Two devices of 143771 MiB: the third that wants one for itself has to wait.
what_does_not_fit_waits_and_says_why() {
    local whole="nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 100" until_go="until [ -e /sim/go ]; do sleep 0.1; done"
    rm -f "$CLUSTER_FOLDER/sim/go"
    apply_asking first "$whole" "$until_go" && apply_asking second "$whole" "$until_go" && phase_is first Running &&
        phase_is second Running || return
    apply_asking third "$whole" tenant && kubectl wait --for=condition=PodScheduled=False pod/third --timeout=60s &&
        kubectl get pod third -o jsonpath='{.status.conditions[0].message}' | grep "2/2 Card" || explain third || return
    touch "$CLUSTER_FOLDER/sim/go"
    phase_is third Succeeded 60 && gone first && gone second && gone third || explain third
}

# vgpu_says CODE WORDS...: what a person with an account of the cluster is told, and how that ends.
vgpu_says() {
    local code=0 wanted=$1
    shift
    KUBECONFIG=$CLUSTER_FOLDER/admin.kubeconfig "$build/src/cli/vgpu" "$@" || code=$?
    [ $code -eq "$wanted" ] || { echo "vgpu $*: ended with $code, not $wanted"; return 1; }
}

# The plan names the devices that a pod gets then; and what waits is told why, and what would help.
a_person_is_told_why_a_pod_waits() {
    local whole="nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 100" until_go="until [ -e /sim/go ]; do sleep 0.1; done" said name
    rm -f "$CLUSTER_FOLDER/sim/go"
    for name in first second; do
        said=$(asking $name "$whole" "$until_go" | vgpu_says 0 plan --json --pods - | grep -o '"uuid": "[^"]*"' | tail -n 1) &&
            apply_asking $name "$whole" "$until_go" && phase_is $name Running &&
            of_pod $name '.metadata.annotations["hami.io/vgpu-devices-allocated"]' | grep "$(cut -d '"' -f 4 <<<"$said")" ||
            explain $name || return
    done
    apply_asking third "$whole" tenant && kubectl wait --for=condition=PodScheduled=False pod/third --timeout=60s || return
    said=$(vgpu_says 1 explain third) && grep -q "$node_name: 2/2 Card" <<<"$said" && grep -q "FilteringFailed\|FailedScheduling" <<<"$said" &&
        said=$(vgpu_says 0 explain first) && grep -q "is bound to node $node_name" <<<"$said" &&
        said=$(vgpu_says 1 plan) && grep -q "default/third .* fits nowhere" <<<"$said" &&
        said=$(vgpu_says 0 plan --add-node "like=$node_name") && grep -q "default/third *like-$node_name" <<<"$said" &&
        said=$(vgpu_says 1 plan --drain "$node_name") && grep -q "default/first: fits nowhere (it ran on" <<<"$said" ||
        { echo "$said"; explain third; return 1; }
    touch "$CLUSTER_FOLDER/sim/go"
    phase_is third Succeeded 60 && gone first && gone second && gone third || explain third
}

# All of them want the node's lock at once.
many_pods_at_once_all_run() {
    local i began=$SECONDS
    for i in $(seq 10); do
        echo ---
        asking "many-$i" "nvidia.com/gpu: 1, nvidia.com/gpumem: 1000" "tenant"
    done | kubectl apply -f - >/dev/null || return
    for i in $(seq 10); do
        phase_is "many-$i" Succeeded 60 && within 20 has_said "many-$i" "took 1 x 256 MiB" || explain "many-$i" || return
    done
    echo "in $((SECONDS - began)) s"
    ! grep -q "lock contention" "$CLUSTER_FOLDER/log/vgpu-scheduler" && lock_is_released &&
        kubectl delete pod --timeout=30s $(seq -f 'many-%g' 10) >/dev/null
}

# Killed while a pod has its devices: the next one knows of it.
a_scheduler_that_is_killed_forgets_nothing() {
    local most="nvidia.com/gpu: 2, nvidia.com/gpumem-percentage: 60" until_go="until [ -e /sim/go ]; do sleep 0.1; done"
    rm -f "$CLUSTER_FOLDER/sim/go"
    apply_asking holds "$most" "$until_go" && phase_is holds Running || explain holds || return
    stop_scheduler KILL
    start_scheduler && apply_asking late "$most" tenant &&
        kubectl wait --for=condition=PodScheduled=False pod/late --timeout=60s || explain late || return
    touch "$CLUSTER_FOLDER/sim/go"
    phase_is late Succeeded 60 && gone holds && gone late || explain late
}

# Without it no pod may be created that would pass it by.
a_pod_waits_for_the_webhook() {
    stop_scheduler
    ! apply_asking early "$limits" tenant && start_scheduler && apply_asking early "$limits" tenant &&
        phase_is early Succeeded 60 && gone early || explain early
}

make_priorities() {
    local row
    for row in low:1 middle:2 high:1000; do
        printf -- '---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: %s}\n' \
            "${row%:*}" "${row#*:}"
    done | kubectl apply -f -
}

# Each device is one slice. kube-scheduler would end the least important pod, which has the other device.
preemption_ends_the_pod_that_is_in_the_way() {
    local whole="nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 100" stay="tail -f /dev/null"
    split=1 restart_plugin && slices_are 2 20 && make_priorities || return
    class=low notes="nvidia.com/use-gpuuuid: $(gpu 0)" apply_asking less "$whole" "$stay" &&
        class=middle notes="nvidia.com/use-gpuuuid: $(gpu 1)" apply_asking more "$whole" "$stay" &&
        phase_is less Running && phase_is more Running || explain less || return
    class=high notes="nvidia.com/use-gpuuuid: $(gpu 1)" apply_asking urgent "$whole" tenant &&
        phase_is urgent Succeeded 60 && [ -z "$(of_pod more .metadata.name 2>/dev/null)" ] && has_phase less Running &&
        within 30 was_preempted more ||
        explain urgent || return
    gone urgent less && restart_plugin && slices_are 20 20
}

# Also in its log: the API server refuses what it has not.
each_verb_of_its_roles_is_needed() {
    python3 "$here/rbac.py" "$build/src/scheduler/vgpu-scheduler" "$here/../../deploy/scheduler-rbac.yaml" \
        "$CLUSTER_FOLDER/vgpu-scheduler.kubeconfig"
}

leave_the_scheduler() {
    kubectl delete mutatingwebhookconfiguration/vgpu-scheduler && stop_scheduler
}

scheduler_cases() {
    check "the scheduler, its webhook and kube-scheduler are ready" the_scheduler_is_ready || return
    check "a pod that only asks gets its slice" a_pod_that_only_asks_gets_its_slice
    check "what does not fit waits, and says why" what_does_not_fit_waits_and_says_why
    check "a person is told why a pod waits, and what would help" a_person_is_told_why_a_pod_waits
    check "many pods at once all run" many_pods_at_once_all_run
    check "a scheduler that is killed forgets nothing" a_scheduler_that_is_killed_forgets_nothing
    check "a pod waits for the webhook" a_pod_waits_for_the_webhook
    check "preemption ends the pod that is in the way, and no other" preemption_ends_the_pod_that_is_in_the_way
    check "the scheduler goes" leave_the_scheduler
    check "each verb of the scheduler's roles is needed" each_verb_of_its_roles_is_needed
}
