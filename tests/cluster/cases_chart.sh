# SPDX-License-Identifier: Apache-2.0
# The whole of it from Helm's chart and the one image, on a cluster that has nothing of ours; read by e2e.sh.
# shellcheck shell=bash disable=SC2154
chart=$here/../../deploy/charts/cantaloupe
chart_space=gpu-system
own_image=local.test/cantaloupe:test
kube_scheduler_image=local.test/kube-scheduler
chart_services=

# What the node is said to have: the simulated driver, which NVIDIA's container runtime would bring.
chart_values() {
    cat <<END
global: {gpuHookPath: $CLUSTER_FOLDER/chart}
image: {registry: local.test, repository: cantaloupe, tag: test, pullPolicy: Never}
scheduler:
  kubeScheduler: {image: {registry: local.test, repository: kube-scheduler, pullPolicy: Never}}
  admissionWebhook: {failurePolicy: Fail} # else a pod that is too early is nobody's
devicePlugin:
  nvidiaNodeSelector: null
  statePath: $CLUSTER_FOLDER/chart-state
  extraEnvs: &sim {LD_LIBRARY_PATH: /sim/lib, VGPU_SIM_STATE: /sim/state/machine, VGPU_SIM_BOARD: h200x2}
  extraVolumes:
  - {name: sim, hostPath: {path: $CLUSTER_FOLDER/sim}}
  - {name: sim-library, hostPath: {path: $(readlink -f "$build/sim/nvml")}}
  extraVolumeMounts:
  - {name: sim, mountPath: /sim/state}
  - {name: sim-library, mountPath: /sim/lib, readOnly: true}
  monitor: {extraEnvs: *sim}
END
}

# Archives of what any node may run stay, for nodes that start later.
make_own_images() {
    local images=$CLUSTER_FOLDER/images
    mkdir -p "$CLUSTER_FOLDER/sim" && chmod a+rwX "$CLUSTER_FOLDER/sim" && make_tenant_image &&
        python3 "$here/../../tools/image.py" "$build" "$images/own.tar" $own_image && ctr -n k8s.io images import "$images/own.tar" &&
        python3 "$here/image.py" "$CLUSTER_FOLDER/kube.tar" "$kube_scheduler_image:v$kubernetes_version" \
            "$binaries/kubernetes:/usr/bin/kube-scheduler" && ctr -n k8s.io images import "$CLUSTER_FOLDER/kube.tar" &&
        rm "$CLUSTER_FOLDER/kube.tar"
}

# From the image alone, in a container of its own. The shim writes what it says to a file: of a program that ends at once ctr itself
# may not have begun to read.
each_program_runs_from_the_image() {
    local program said
    for program in vgpu vgpu-plan vgpu-scheduler vgpu-device-plugin vgpu-monitor; do
        said=$CLUSTER_FOLDER/said-$program
        ctr -n k8s.io run --rm --read-only --log-uri "file://$said" $own_image "image-$program" "/usr/local/bin/$program" --version &&
            grep '[0-9]' "$said" || return
    done
}

everything_in_the_cluster() {
    kubectl get -o name -A "$(kubectl api-resources --verbs=list -o name | grep -v -e '^events' -e '^leases' -e componentstatuses | paste -sd,)" | sort
    kubectl get leases -A -o name | sort
}

say_why_not() {
    kubectl -n $chart_space get pods -o wide
    kubectl -n $chart_space describe pods | grep -A 30 -e '^Name:' -e ^Events: | grep -v -e Mounts -e '^ *Type:' | tail -n 60
    kubectl -n $chart_space logs --all-containers --prefix -l app.kubernetes.io/instance=vgpu --tail=15
    return 1
}

# A pod that is created right behind the install has to wait for no more than what is not there yet.
a_slice_runs_after_helm_install() {
    local began=$EPOCHREALTIME ready
    "$here/serve.sh" $chart_space 2>/dev/null &
    chart_services=$!
    kubectl create namespace $chart_space
    everything_in_the_cluster >"$CLUSTER_FOLDER/before-chart"
    began=$EPOCHREALTIME
    chart_values >"$CLUSTER_FOLDER/chart-values.yaml"
    helm install vgpu "$chart" -n $chart_space -f "$CLUSTER_FOLDER/chart-values.yaml" --wait --timeout 60s || say_why_not || return
    ready=$EPOCHREALTIME
    within 60 have_slices 20 && within 20 apply_asking chart "$limits" "tenant && sleep 2" && phase_is chart Running && phase_is chart Succeeded &&
        within 20 has_said chart "took 9 x 256 MiB" || { explain chart; say_why_not; } || return
    figure "all ready after $(bc <<<"($ready - $began) / 1") s"
    figure "first slice running after $(started_after chart "$began") s"
}

# started_after POD SECONDS: when its container started, by the kubelet's clock, which is this one.
started_after() {
    local at
    at=$(date -d "$(of_pod "$1" '.status.containerStatuses[0].state.terminated.startedAt')" +%s)
    bc <<<"($at - $2) / 1"
}

chart_pod() {
    kubectl -n $chart_space get pod -l "app.kubernetes.io/component=$1" -o 'jsonpath={.items[0].status.podIP}'
}

# By the monitor in its pod.
the_record_is_told_as_read() {
    curl -sf "http://$(chart_pod device-plugin):9394/metrics" | grep -x 'vgpu_kubelet_record_is_read 1'
}

metrics_tell_of_slices() {
    curl -sf "http://$(chart_pod device-plugin):9394/metrics" | grep hami_host_gpu_memory_used_bytes &&
        curl -sf "http://$(chart_pod scheduler):9395/metrics" | grep 'vgpu_scheduler_nodes 1' &&
        within 20 the_record_is_told_as_read
}

# The kubelet counts the signal to end; what ends late is killed, and that takes longer than the grace.
an_upgrade_keeps_slices() {
    apply_asking kept "$limits" "until [ -e /tmp/end ]; do sleep 0.1; done" && phase_is kept Running || return
    helm upgrade vgpu "$chart" -n $chart_space -f "$CLUSTER_FOLDER/chart-values.yaml" --set devicePlugin.podAnnotations.upgraded=yes \
        --set scheduler.podAnnotations.upgraded=yes --wait --timeout 90s || say_why_not || return
    within 60 have_slices 20 && has_room kept 9 && apply_asking beside "$limits" tenant && phase_is beside Succeeded 60 &&
        gone kept beside || { explain beside; say_why_not; }
}

nothing_is_left_after_helm_uninstall() {
    gone chart
    kubectl wait --for=delete pod/chart pod/kept pod/beside --timeout=30s &&
        helm uninstall vgpu -n $chart_space --wait --timeout 60s &&
        kubectl -n $chart_space wait --for=delete pod --all --timeout=60s || return
    kill "$chart_services"
    within 20 cluster_is_as_before || { diff "$CLUSTER_FOLDER/before-chart" <(everything_in_the_cluster); return 1; }
}

cluster_is_as_before() {
    diff -q "$CLUSTER_FOLDER/before-chart" <(everything_in_the_cluster) >/dev/null
}

# The plain manifests are of the chart: they are only applied.
manifests_are_taken() {
    kubectl apply --dry-run=server -f "$here/../../deploy/cantaloupe.yaml" | grep -c created
}

chart_cases() {
    check "images are made without a network" make_own_images || return
    check "each program runs from the image" each_program_runs_from_the_image
    check "a slice runs after helm install" a_slice_runs_after_helm_install || return
    check "metrics tell of slices" metrics_tell_of_slices
    check "an upgrade keeps slices" an_upgrade_keeps_slices
    check "nothing is left after helm uninstall" nothing_is_left_after_helm_uninstall
    check "the plain manifests are taken" manifests_are_taken
}
