# SPDX-License-Identifier: Apache-2.0
"""The values of HAMi's chart (2.10), by the contract's table: what its users may have in their values.yaml, and what becomes of it here."""

# What a user has who has copied all defaults: all of it must be taken.
DEFAULTS = """
global: {imageTag: v2.10.0, gpuHookPath: /usr/local, managedNodeSelectorEnable: false, managedNodeSelector: {usage: gpu}}
resourceName: nvidia.com/gpu
resourceMem: nvidia.com/gpumem
resourceMemPercentage: nvidia.com/gpumem-percentage
resourceCores: nvidia.com/gpucores
resourcePriority: nvidia.com/priority
schedulerName: hami-scheduler
scheduler:
  defaultSchedulerPolicy: {nodeSchedulerPolicy: binpack, gpuSchedulerPolicy: spread}
  metricsBindAddress: ":9395"
  forceOverwriteDefaultScheduler: true
  overwriteEnv: "false"
  leaderElect: true
  replicas: 1
  livenessProbe: false
  nodeName: ""
  nodeLabelSelector: {}
  kubeScheduler: {enabled: true, image: {registry: registry.cn-hangzhou.aliyuncs.com, repository: google_containers/kube-scheduler, tag: ""}}
  extender: {extraArgs: [--debug, -v=4]}
  nodeLockExpire: "5m"
  admissionWebhook:
    enabled: true
    customURL: {enabled: false, host: 127.0.0.1, port: 31998, path: /webhook}
    whitelistNamespaces: []
    manageNamespaceSelector: true
    namespaceSelector: {matchLabels: {}, matchExpressions: []}
    objectSelector: {matchLabels: {}, matchExpressions: []}
    reinvocationPolicy: Never
    failurePolicy: Ignore
  certManager: {enabled: false}
  patch: {enabled: true}
  service: {type: NodePort, httpPort: 443, schedulerPort: 31998, monitorPort: 31993, monitorTargetPort: 9395, labels: {}, annotations: {}}
devicePlugin:
  deviceSplitCount: 10
  deviceMemoryScaling: 1
  deviceCoreScaling: 1
  enableNumaTopology: false
  preConfiguredDeviceMemory: 0
  nodeConfiguration:
    config: '{"nodeconfig": [{"name": "your-node-name", "operatingmode": "hami-core", "devicememoryscaling": 1, "devicesplitcount": 10,
      "migstrategy": "none", "filterdevices": {"uuid": [], "index": []}}]}'
    externalConfigName: ""
  runtimeClassName: ""
  createRuntimeClass: false
  migStrategy: none
  disablecorelimit: "false"
  passDeviceSpecsEnabled: false
  deviceListStrategy: envvar
  nvidiaHookPath: null
  nvidiaDriverRoot: null
  gdrcopyEnabled: null
  gdsEnabled: null
  mofedEnabled: null
  gpuOperatorToolkitReady: {enabled: false, hostPath: /run/nvidia/validations}
  pluginPath: /var/lib/kubelet/device-plugins
  libPath: /usr/local/vgpu
  hostPID: true
  hostNetwork: false
  securityContext: {privileged: true, allowPrivilegeEscalation: true, capabilities: {drop: [ALL], add: [SYS_ADMIN]}}
  nvidiaNodeSelector: {gpu: "on"}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}
  service: {type: NodePort, httpPort: 31992, labels: {}, annotations: {}}
  monitor:
    ctrPath: /usr/local/vgpu/containers
    resyncInterval: 5m
    securityContext: {privileged: false, allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [SYS_ADMIN]}}
devices: {nvidia: {gpuCorePolicy: default, libCudaLogLevel: 1}}
legacyMetrics: false
prometheus: {enabled: false}
device-config: {content: ""}
mockDevicePlugin: {enabled: false}
"""

NODE_PORT = {"scheduler.service.type": "NodePort"}
CUSTOM_URL = {"scheduler.admissionWebhook.customURL.enabled": True}
READY = {"devicePlugin.gpuOperatorToolkitReady.enabled": True}
OUTSIDE = {"key": "outside", "operator": "Exists"}

# (key, another value than the default, texts of which there are more in the objects then, or fewer with "!", what must be set beside it)
HONOURED = [
    ("global.gpuHookPath", "/opt/gpu", "{name: HOOK_PATH, value: /opt/gpu}\n- --hook-path=/opt/gpu/vgpu\npath: /opt/gpu/vgpu", {}),
    ("resourceName", "example.com/gpu", "resourceCountName: example.com/gpu\nname: example.com/gpu\n- --resource-name=example.com/gpu", {}),
    ("resourceMem", "example.com/mem", "resourceMemoryName: example.com/mem\nname: example.com/mem", {}),
    ("resourceMemPercentage", "example.com/part", "resourceMemoryPercentageName: example.com/part\nname: example.com/part", {}),
    ("resourceCores", "example.com/cores", "resourceCoreName: example.com/cores\nname: example.com/cores", {}),
    ("resourcePriority", "example.com/first", "resourcePriorityName: example.com/first\nname: example.com/first", {}),
    ("schedulerName", "theirs", "- --scheduler-name=theirs\nschedulerName: theirs", {}),
    ("scheduler.defaultSchedulerPolicy.nodeSchedulerPolicy", "spread", "- --node-scheduler-policy=spread", {}),
    ("scheduler.defaultSchedulerPolicy.gpuSchedulerPolicy", "binpack", "- --gpu-scheduler-policy=binpack", {}),
    ("scheduler.metricsBindAddress", ":9999", "- --metrics-bind-address=:9999\ncontainerPort: 9999", {}),
    ("scheduler.forceOverwriteDefaultScheduler", False, "- --force-overwrite-default-scheduler=false", {}),
    ("scheduler.overwriteEnv", "true", "overwriteEnv: true", {}),
    ("scheduler.leaderElect", False, "leaderElect: false", {}),
    ("scheduler.replicas", 2, "replicas: 2\nkind: PodDisruptionBudget", {}),
    ("scheduler.livenessProbe", True, "livenessProbe:", {}),
    ("scheduler.nodeName", "n7", "nodeName: n7", {}),
    ("scheduler.nodeLabelSelector", {"pool": "gpus"}, "- --node-label-selector=pool=gpus", {}),
    ("scheduler.kubeScheduler.enabled", False, "!- name: kube-scheduler", {}),
    ("scheduler.kubeScheduler.image.registry", "theirs.example", "image: theirs.example/kube-scheduler", {}),
    ("scheduler.kubeScheduler.image.repository", "theirs", "image: registry.k8s.io/theirs:", {}),
    ("scheduler.kubeScheduler.image.tag", "v1.30.0", "/kube-scheduler:v1.30.0", {}),
    ("scheduler.extender.extraArgs", ["--kube-qps=77"], '- "--kube-qps=77"', {}),
    ("scheduler.nodeLockExpire", "7m", "- --node-lock-timeout=7m", {}),
    ("scheduler.admissionWebhook.enabled", False, "!kind: MutatingWebhookConfiguration", {}),
    ("scheduler.admissionWebhook.failurePolicy", "Fail", "failurePolicy: Fail", {}),
    ("scheduler.admissionWebhook.reinvocationPolicy", "IfNeeded", "reinvocationPolicy: IfNeeded", {}),
    ("scheduler.admissionWebhook.customURL.enabled", True, "url: https://127.0.0.1:31998/webhook", {}),
    ("scheduler.admissionWebhook.customURL.host", "10.9.8.7", "url: https://10.9.8.7:31998/webhook", CUSTOM_URL),
    ("scheduler.admissionWebhook.customURL.port", 4443, "url: https://127.0.0.1:4443/webhook", CUSTOM_URL),
    ("scheduler.admissionWebhook.customURL.path", "/hook", "url: https://127.0.0.1:31998/hook", CUSTOM_URL),
    ("scheduler.admissionWebhook.whitelistNamespaces", ["quiet"], "quiet", {}),
    ("scheduler.admissionWebhook.manageNamespaceSelector", False, "!namespaceSelector:", {}),
    ("scheduler.admissionWebhook.namespaceSelector", {"matchExpressions": [OUTSIDE]}, "key: outside", {}),
    ("scheduler.admissionWebhook.objectSelector", {"matchExpressions": [OUTSIDE]}, "key: outside", {}),
    ("scheduler.certManager.enabled", True, "kind: Certificate\n- --cert_file=/tls/tls.crt", {}),
    ("scheduler.service.type", "NodePort", "type: NodePort\nnodePort: 31998\nnodePort: 31993", {}),
    ("scheduler.service.httpPort", 444, "port: 444", {}),
    ("scheduler.service.schedulerPort", 30998, "nodePort: 30998", NODE_PORT),
    ("scheduler.service.monitorPort", 30993, "nodePort: 30993", NODE_PORT),
    ("scheduler.service.monitorTargetPort", 9999, "targetPort: 9999", {}),
    ("scheduler.service.labels", {"of": "them"}, "of: them", {}),
    ("scheduler.service.annotations", {"of": "them"}, "of: them", {}),
    ("devicePlugin.deviceSplitCount", 7, "deviceSplitCount: 7", {}),
    ("devicePlugin.deviceMemoryScaling", 1.5, "deviceMemoryScaling: 1.5", {}),
    ("devicePlugin.deviceCoreScaling", 2, "deviceCoreScaling: 2", {}),
    ("devicePlugin.enableNumaTopology", True, "enableNumaTopology: true", {}),
    ("devicePlugin.preConfiguredDeviceMemory", 4096, "preConfiguredDeviceMemory: 4096", {}),
    ("devicePlugin.nodeConfiguration.config", '{"nodeconfig": [{"name": "n7"}]}', '{"nodeconfig": [{"name": "n7"}]}', {}),
    ("devicePlugin.nodeConfiguration.externalConfigName", "theirs", "configMap: {name: theirs}", {}),
    ("devicePlugin.runtimeClassName", "theirs", "runtimeClassName: theirs", {}),
    ("devicePlugin.createRuntimeClass", True, "kind: RuntimeClass\nhandler: nvidia", {}),
    ("devicePlugin.migStrategy", "mixed", "- --mig-strategy=mixed", {}),
    ("devicePlugin.disablecorelimit", "true", "disableCoreLimit: true", {}),
    ("devicePlugin.passDeviceSpecsEnabled", True, "- --pass-device-specs=true", {}),
    ("devicePlugin.deviceListStrategy", "volume-mounts", "- --device-list-strategy=volume-mounts", {}),
    ("devicePlugin.nvidiaHookPath", "/usr/bin/hook", "- --nvidia-cdi-hook-path=/usr/bin/hook", {}),
    ("devicePlugin.nvidiaDriverRoot", "/run/driver", "- --nvidia-driver-root=/run/driver\npath: /run/driver", {}),
    ("devicePlugin.gdrcopyEnabled", True, "- --gdrcopy-enabled=true", {}),
    ("devicePlugin.gdsEnabled", True, "- --gds-enabled=true", {}),
    ("devicePlugin.mofedEnabled", True, "- --mofed-enabled=true", {}),
    ("devicePlugin.gpuOperatorToolkitReady.enabled", True, "path: /run/nvidia/validations/toolkit-ready", {}),
    ("devicePlugin.gpuOperatorToolkitReady.hostPath", "/run/ready", "path: /run/ready/toolkit-ready", READY),
    ("devicePlugin.pluginPath", "/data/plugins", "path: /data/plugins\n- --kubelet-socket=/data/plugins/kubelet.sock", {}),
    ("devicePlugin.hostPID", False, "hostPID: false", {}),
    ("devicePlugin.hostNetwork", True, "hostNetwork: true", {}),
    ("devicePlugin.securityContext", {"privileged": False}, "privileged: false", {}),
    ("devicePlugin.nvidiaNodeSelector", {"gpu": "yes-please"}, "gpu: yes-please", {}),
    ("devicePlugin.updateStrategy", {"type": "OnDelete"}, "type: OnDelete", {}),
    ("devicePlugin.service.type", "ClusterIP", "!nodePort: 31992", {}),
    ("devicePlugin.service.httpPort", 30992, "nodePort: 30992", {}),
    ("devicePlugin.service.labels", {"of": "them"}, "of: them", {}),
    ("devicePlugin.service.annotations", {"of": "them"}, "of: them", {}),
    ("devicePlugin.monitor.securityContext", {"privileged": True}, "privileged: true", {"devicePlugin.securityContext": {"privileged": False}}),
    ("devices.nvidia.gpuCorePolicy", "force", "gpuCorePolicy: force", {}),
    ("devices.nvidia.libCudaLogLevel", 4, "libCudaLogLevel: 4", {}),
    ("legacyMetrics", True, "- --legacy-metrics", {}),
    ("prometheus.enabled", True, "kind: ServiceMonitor", {}),
    ("device-config.content", "nvidia: {deviceSplitCount: 3}\n", "nvidia: {deviceSplitCount: 3}\n!deviceSplitCount: 10", {}),
]

# (key, value): nothing changes, and docs/kubernetes.md says why
IGNORED = [
    ("global.imageTag", "v2.9.0"),
    ("global.managedNodeSelectorEnable", True),
    ("global.managedNodeSelector", {"usage": "other"}),
    ("scheduler.patch.enabled", False),
    ("devicePlugin.monitor.resyncInterval", "1m"),
    ("mockDevicePlugin.enabled", True),
]

# (key, value): refused by name, unless global.gpuHookPath is /opt/gpu, too
FOLLOWING = [
    ("devicePlugin.libPath", "/opt/gpu/vgpu"),
    ("devicePlugin.monitor.ctrPath", "/opt/gpu/vgpu/containers"),
]
