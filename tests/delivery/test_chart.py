#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_chart.py SCHEDULER PLUGIN MONITOR: whether each value of the chart comes where it should, and whether the programs know
what they are told. Needs Helm (tests/cluster/build.sh helm) and PyYAML; without them it is skipped."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "../.."))
CHART = os.path.join(ROOT, "deploy/charts/cantaloupe")
SKIPPED = 77

try:
    import yaml
except ImportError:
    print("no PyYAML here")
    sys.exit(SKIPPED)


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def find_helm():
    version = re.search(r"^helm_version=(\S+)", text_of("tests/cluster/names.sh"), re.M).group(1)
    cache = os.environ.get("CANTALOUPE_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "cantaloupe")
    return os.path.join(cache, f"helm-{version}", "helm")


HELM = find_helm()
PROGRAMS = {}


def helm(values):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(values if isinstance(values, str) else yaml.safe_dump(values))
        f.flush()
        return subprocess.run([HELM, "template", "vgpu", CHART, "-n", "gpu-system", "--kube-version", "1.35.4", "-f", f.name],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


class Rendered:
    """Objects by kind and name, and what is asked of them again and again."""

    def __init__(self, values):
        done = helm(values)
        if done.returncode:
            raise AssertionError(done.stderr)
        self.objects = {(o["kind"], o["metadata"]["name"]): o for o in yaml.safe_load_all(done.stdout) if o}
        self.kinds = [kind for kind, _ in self.objects]

    def pod(self, kind, name):
        return self.objects[kind, name]["spec"]["template"]["spec"]

    def scheduler(self):
        return self.pod("Deployment", "vgpu-scheduler")

    def plugin(self):
        return self.pod("DaemonSet", "vgpu-device-plugin")

    def container(self, name):
        pod = self.plugin() if name in ("device-plugin", "vgpu-monitor") else self.scheduler()
        return next(c for c in pod["containers"] if c["name"] == name)

    def flags(self, name):
        """--name=value as a table; the last of one name is the one that counts."""
        return dict(argument.lstrip("-").partition("=")[::2] for argument in self.container(name)["command"][1:])

    def environment(self, name):
        return {v["name"]: v.get("value") for v in self.container(name)["env"]}

    def device_config(self):
        return yaml.safe_load(self.objects["ConfigMap", "vgpu-scheduler-device"]["data"]["device-config.yaml"])

    def kube_scheduler(self):
        return yaml.safe_load(self.objects["ConfigMap", "vgpu-scheduler"]["data"]["config.yaml"])

    def webhook(self):
        return self.objects["MutatingWebhookConfiguration", "vgpu-scheduler"]

    def volume(self, name):
        return next(v for v in self.plugin()["volumes"] if v["name"] == name)


# What HAMi's documentation has a user change, all at once.
CHANGED = """
global:
  imageRegistry: mirror.example
  imagePullSecrets: [first]
  imageTag: v2.10.0
  gpuHookPath: /opt/gpu
  labels: {team: gpu}
  annotations: {owner: us}
resourceName: example.com/gpu
resourceMem: example.com/mem
resourceMemPercentage: example.com/percent
resourceCores: example.com/cores
resourcePriority: example.com/priority
schedulerName: other-scheduler
mluResourceName: cambricon.com/vmlu
scheduler:
  nodeName: node7
  nodeLabelSelector: {gpu: "on", a: b}
  overwriteEnv: "true"
  defaultSchedulerPolicy: {nodeSchedulerPolicy: spread, gpuSchedulerPolicy: topology-aware}
  metricsBindAddress: ":9999"
  kubeQPS: 50
  kubeBurst: "60"
  kubeTimeout: 7
  nodeLockRetryTimeout: 9s
  extenderHTTPTimeout: 44
  forceOverwriteDefaultScheduler: false
  livenessProbe: true
  leaderElect: true
  replicas: 3
  kubeScheduler: {image: {repository: kube, tag: v1.30.1, pullPolicy: Always, pullSecrets: [second]}, resources: {limits: {cpu: 1}}, extraNewArgs: [--config=/config/config.yaml, -v=5]}
  extender: {extraArgs: [--debug, -v=4], resources: {limits: {cpu: 2}}}
  nodeLockExpire: 3m
  podAnnotations: {a: b}
  tolerations: [{operator: Exists}]
  admissionWebhook:
    failurePolicy: Fail
    reinvocationPolicy: IfNeeded
    whitelistNamespaces: [quiet]
    namespaceSelector: {matchLabels: {name: m}, matchExpressions: [{key: k, operator: Exists}]}
    objectSelector: {matchLabels: {o: p}, matchExpressions: [{key: l, operator: Exists}]}
  patch: {enabled: true, runAsUser: 2000, image: {repository: jettech/kube-webhook-certgen}}
  service: {type: NodePort, httpPort: 444, schedulerPort: 30998, monitorPort: 30993, monitorTargetPort: 9999, httpTargetPort: 443, labels: {s: t}, annotations: {u: v}}
devicePlugin:
  image: {repository: projecthami/hami, tag: v2.10.0}
  deviceSplitCount: 5
  deviceMemoryScaling: 1.5
  deviceCoreScaling: 2
  enableNumaTopology: true
  preConfiguredDeviceMemory: 131072
  nodeConfiguration: {config: '{"nodeconfig": [{"name": "n1", "operatingmode": "mig"}]}'}
  runtimeClassName: nvidia-test
  createRuntimeClass: true
  migStrategy: mixed
  disablecorelimit: "true"
  passDeviceSpecsEnabled: true
  deviceListStrategy: cdi-cri
  nvidiaHookPath: /usr/bin/nvidia-cdi-hook
  nvidiaDriverRoot: /run/nvidia/driver
  gdrcopyEnabled: true
  gdsEnabled: "true"
  mofedEnabled: false
  gpuOperatorToolkitReady: {enabled: true}
  extraArgs: [-v=4]
  extraEnvs: {DP_DISABLE_HEALTHCHECKS: xids}
  pluginPath: /data/plugins
  libPath: /opt/gpu/vgpu
  podAnnotations: {c: d}
  hostPID: false
  hostNetwork: true
  securityContext: {privileged: false, capabilities: {add: [SYS_ADMIN]}}
  nvidiaNodeSelector: {gpu: yes-please}
  tolerations: [{key: x, operator: Exists}]
  updateStrategy: {type: OnDelete}
  service: {type: NodePort, httpPort: 30992, labels: {w: x}, annotations: {key: z}}
  monitor: {ctrPath: /opt/gpu/vgpu/containers, resyncInterval: 5m, extraArgs: [-v=4], extraEnvs: {X: "1"}, resources: {limits: {cpu: 3}}}
  resources: {limits: {cpu: 4}}
devices: {nvidia: {gpuCorePolicy: force, libCudaLogLevel: 3}, ascend: {enabled: false}, kunlun: {enabled: true}}
legacyMetrics: true
prometheus: {enabled: true}
"""


class Chart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plain, cls.changed = Rendered({}), Rendered(CHANGED)

    def test_it_is_linted(self):
        done = subprocess.run([HELM, "lint", "--strict", CHART], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_plain_manifests_are_current(self):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tools/manifests.py"), HELM, "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_programs_know_each_flag(self):
        for rendered in (self.plain, self.changed, Rendered({"scheduler": {"certManager": {"enabled": True}, "reservationTimeout": "5m"}})):
            for name, program in PROGRAMS.items():
                command = rendered.container(name)["command"]
                self.assertEqual(command[0], os.path.basename(program))
                done = subprocess.run([program, *command[1:], "--version"], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
                known = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
                for flag in rendered.flags(name):
                    if flag != "v":
                        self.assertRegex(known, rf"--{re.escape(flag)}\b", f"{name}: {flag}")

    def test_an_unknown_flag_would_be_seen(self):
        for program in PROGRAMS.values():
            done = subprocess.run([program, "--no-such-flag=1", "--version"], capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0, program)

    def test_keys_of_the_device_config_are_known(self):
        known = {}
        for section, key in re.findall(r'KEY\("(\w+)", \w+, "(\w+)"', text_of("src/plugin/config/keys.def")):
            known.setdefault(section, {"migProfileAllowlist"} if section == "nvidia" else set()).add(key)
        for section, keys in self.plain.device_config().items():
            self.assertLessEqual(set(keys), known[section])

    def test_resources_and_names(self):
        config = self.changed.device_config()["nvidia"]
        names = [config[k] for k in ("resourceCountName", "resourceMemoryName", "resourceMemoryPercentageName", "resourceCoreName", "resourcePriorityName")]
        self.assertEqual(names, ["example.com/" + n for n in ("gpu", "mem", "percent", "cores", "priority")])
        managed = self.changed.kube_scheduler()["extenders"][0]["managedResources"]
        self.assertEqual([r["name"] for r in managed], names)
        self.assertEqual([r.get("ignoredByScheduler", False) for r in managed], [False, True, True, True, True])
        self.assertEqual(self.changed.kube_scheduler()["profiles"], [{"schedulerName": "other-scheduler"}])
        self.assertEqual(self.changed.kube_scheduler()["extenders"][0]["httpTimeout"], "44s")

    def test_device_config(self):
        nvidia = self.changed.device_config()["nvidia"]
        wanted = {"overwriteEnv": True, "deviceSplitCount": 5, "deviceMemoryScaling": 1.5, "deviceCoreScaling": 2, "enableNumaTopology": True,
                  "preConfiguredDeviceMemory": 131072, "libCudaLogLevel": 3, "gpuCorePolicy": "force", "disableCoreLimit": True,
                  "runtimeClassName": "nvidia-test", "defaultGPUNum": 1}
        self.assertEqual({k: nvidia[k] for k in wanted}, wanted)
        plain = self.plain.device_config()["nvidia"]
        wanted = {"overwriteEnv": False, "deviceSplitCount": 10, "deviceMemoryScaling": 1, "deviceCoreScaling": 1, "gpuCorePolicy": "default"}
        self.assertEqual({k: plain[k] for k in wanted}, wanted)
        own = Rendered({"device-config": {"content": "nvidia:\n  deviceSplitCount: 3\n"}}).device_config()
        self.assertEqual(own, {"nvidia": {"deviceSplitCount": 3}})
        profiles = [{"models": ["H100"], "profiles": ["1g.10gb"]}]
        more = Rendered({"devicePlugin": {"migProfileAllowlist": profiles, "requireNodeLock": True}}).device_config()
        self.assertEqual((more["nvidia"]["migProfileAllowlist"], more["cantaloupe"]["requireNodeLock"]), (profiles, True))

    def test_scheduler_flags(self):
        wanted = {"node-scheduler-policy": "spread", "gpu-scheduler-policy": "topology-aware", "metrics-bind-address": ":9999", "kube-qps": "50",
                  "kube-burst": "60", "kube-timeout": "7", "node-lock-retry-timeout": "9s", "force-overwrite-default-scheduler": "false",
                  "node-lock-timeout": "3m", "node-label-selector": "a=b,gpu=on", "scheduler-name": "other-scheduler", "legacy-metrics": "true",
                  "leader-elect": "true", "leader-elect-resource-name": "other-scheduler", "leader-elect-resource-namespace": "gpu-system",
                  "http_bind": ":443", "debug": "", "v": "4"}
        flags = self.changed.flags("vgpu-scheduler")
        self.assertEqual({k: flags.get(k) for k in wanted}, wanted)
        for flag in ("kube-qps", "node-label-selector", "reservation-timeout"):
            self.assertNotIn(flag, self.plain.flags("vgpu-scheduler"))

    def test_scheduler_pod(self):
        pod = self.changed.scheduler()
        self.assertEqual((pod["nodeName"], pod["tolerations"], pod["imagePullSecrets"]),
                         ("node7", [{"operator": "Exists"}], [{"name": "first"}, {"name": "second"}]))
        self.assertEqual(pod["securityContext"]["sysctls"], [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}])
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        kube = self.changed.container("kube-scheduler")
        self.assertEqual((kube["image"], kube["imagePullPolicy"], kube["resources"]), ("mirror.example/kube:v1.30.1", "Always", {"limits": {"cpu": 1}}))
        self.assertIn("-v=5", kube["command"])
        self.assertIn("livenessProbe", kube)
        self.assertNotIn("livenessProbe", self.plain.container("vgpu-scheduler"))
        self.assertEqual(self.plain.container("kube-scheduler")["image"], "registry.k8s.io/kube-scheduler:v1.35.4")
        own = self.changed.container("vgpu-scheduler")
        self.assertEqual(own["image"], "mirror.example/cantaloupe/cantaloupe:v" + self.version())
        self.assertEqual(own["resources"], {"limits": {"cpu": 2}})
        deployment = self.changed.objects["Deployment", "vgpu-scheduler"]
        self.assertEqual((deployment["spec"]["replicas"], deployment["spec"]["template"]["metadata"]["annotations"]["a"]), (3, "b"))
        self.assertEqual(deployment["metadata"]["labels"]["team"], "gpu")
        self.assertEqual(self.changed.objects["PodDisruptionBudget", "vgpu-scheduler"]["spec"]["minAvailable"], 1)

    @staticmethod
    def version():
        return yaml.safe_load(text_of("deploy/charts/cantaloupe/Chart.yaml"))["appVersion"]

    def test_the_version_is_the_programs(self):
        self.assertEqual(subprocess.run([PROGRAMS["vgpu-scheduler"], "--version"], capture_output=True, text=True, check=True).stdout.strip(), self.version())

    def test_replicas_need_a_leader(self):
        one = Rendered({"scheduler": {"leaderElect": False, "replicas": 3}})
        self.assertEqual(one.objects["Deployment", "vgpu-scheduler"]["spec"]["replicas"], 1)
        self.assertNotIn("leader-elect", one.flags("vgpu-scheduler"))
        self.assertFalse(one.kube_scheduler()["leaderElection"]["leaderElect"])
        self.assertNotIn("Lease", one.kinds)

    def test_webhook(self):
        new, guard, left_out = self.changed.webhook()["webhooks"]
        self.assertEqual((new["failurePolicy"], new["reinvocationPolicy"], guard["failurePolicy"]), ("Fail", "IfNeeded", "Ignore"))
        ours = {"key": "hami.io/webhook", "operator": "NotIn", "values": ["ignore"]}
        self.assertEqual(new["namespaceSelector"], {"matchLabels": {"name": "m"}, "matchExpressions": [
            ours, {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["quiet"]}, {"key": "k", "operator": "Exists"}]})
        self.assertEqual(new["objectSelector"], {"matchLabels": {"o": "p"}, "matchExpressions": [ours, {"key": "l", "operator": "Exists"}]})
        self.assertEqual(new["clientConfig"]["service"], {"name": "vgpu-scheduler", "namespace": "gpu-system", "path": "/webhook", "port": 444})
        self.assertEqual(left_out["clientConfig"]["service"], {"name": "vgpu-scheduler", "namespace": "gpu-system", "path": "/guard", "port": 444})
        self.assertEqual(({"namespaceSelector", "objectSelector"} & set(left_out), left_out["rules"][0]["operations"]), (set(), ["CREATE"]))
        grows = Rendered({"devicePlugin": {"resizeBeyondLimits": True}})
        self.assertEqual((grows.webhook()["webhooks"][1]["failurePolicy"], grows.device_config()["cantaloupe"]["resizeBeyondLimits"]), ("Fail", True))
        off = Rendered({"scheduler": {"admissionWebhook": {"enabled": False}}})
        self.assertNotIn("MutatingWebhookConfiguration", off.kinds)
        self.assertNotIn("webhook-configuration", off.flags("vgpu-scheduler"))
        url = Rendered({"scheduler": {"admissionWebhook": {"customURL": {"enabled": True, "host": "10.1.2.3"}, "manageNamespaceSelector": False, "guard": False}}})
        self.assertEqual([w["clientConfig"] for w in url.webhook()["webhooks"]], [{"url": "https://10.1.2.3:31998/webhook"}])
        self.assertNotIn("namespaceSelector", url.webhook()["webhooks"][0])
        self.assertIn("10.1.2.3", url.flags("vgpu-scheduler")["webhook-hosts"].split(","))

    def test_certificates(self):
        self.assertEqual(self.plain.flags("vgpu-scheduler")["webhook-secret"], "gpu-system/vgpu-scheduler")
        self.assertIn(("Secret", "vgpu-scheduler"), self.plain.objects)
        manager = Rendered({"scheduler": {"certManager": {"enabled": True}}})
        self.assertEqual(manager.flags("vgpu-scheduler")["cert_file"], "/tls/tls.crt")
        self.assertEqual(manager.webhook()["metadata"]["annotations"]["cert-manager.io/inject-ca-from"], "gpu-system/vgpu-scheduler")
        self.assertIn(("Certificate", "vgpu-scheduler"), manager.objects)

    def test_services(self):
        service = self.changed.objects["Service", "vgpu-scheduler"]
        self.assertEqual(service["spec"]["ports"], [{"name": "http", "port": 444, "targetPort": 443, "nodePort": 30998},
                                                    {"name": "monitor", "port": 30993, "targetPort": 9999, "nodePort": 30993}])
        self.assertEqual((service["metadata"]["labels"]["s"], service["metadata"]["annotations"]), ("t", {"u": "v", "owner": "us"}))
        monitor = self.changed.objects["Service", "vgpu-device-plugin-monitor"]
        self.assertEqual(monitor["spec"]["ports"], [{"name": "monitorport", "port": 30992, "targetPort": "metrics", "nodePort": 30992}])
        self.assertEqual((monitor["metadata"]["labels"]["w"], monitor["metadata"]["annotations"]["key"]), ("x", "z"))
        self.assertNotIn("nodePort", json.dumps(self.plain.objects["Service", "vgpu-scheduler"]))
        for one in (self.plain, self.changed):
            for name, spec in ((n, o["spec"]) for (kind, n), o in one.objects.items() if kind == "Service"):
                labels = one.objects[("Deployment", name) if name == "vgpu-scheduler" else ("DaemonSet", "vgpu-device-plugin")]["spec"]["template"]["metadata"]["labels"]
                self.assertLessEqual(spec["selector"].items(), labels.items())
        self.assertEqual(self.changed.kinds.count("ServiceMonitor"), 2)
        self.assertNotIn("ServiceMonitor", self.plain.kinds)

    def test_plugin_flags(self):
        wanted = {"mig-strategy": "mixed", "pass-device-specs": "true", "device-list-strategy": "cdi-cri", "nvidia-cdi-hook-path": "/usr/bin/nvidia-cdi-hook",
                  "nvidia-driver-root": "/run/nvidia/driver", "gdrcopy-enabled": "true", "gds-enabled": "true", "mofed-enabled": "false",
                  "kubelet-socket": "/data/plugins/kubelet.sock", "v": "4"}
        flags = self.changed.flags("device-plugin")
        self.assertEqual({k: flags.get(k) for k in wanted}, wanted)
        self.assertNotIn("gds-enabled", self.plain.flags("device-plugin"))
        self.assertEqual(self.changed.environment("device-plugin")["HOOK_PATH"], "/opt/gpu")
        self.assertEqual(self.changed.environment("device-plugin")["DP_DISABLE_HEALTHCHECKS"], "xids")
        self.assertEqual(self.changed.environment("vgpu-monitor")["X"], "1")
        self.assertEqual(self.changed.flags("vgpu-monitor")["hook-path"], "/opt/gpu/vgpu")
        self.assertIn("legacy-metrics", self.changed.flags("vgpu-monitor"))
        self.assertNotIn("legacy-metrics", self.plain.flags("vgpu-monitor"))
        self.assertEqual(self.plain.flags("vgpu-monitor")["shares-folder"], "/var/lib/cantaloupe/shares")
        ends = Rendered({"devicePlugin": {"monitor": {"endProcesses": ["memory", "compute"], "auditInterval": 5}}})
        self.assertEqual((ends.flags("vgpu-monitor")["end-processes"], ends.flags("vgpu-monitor")["audit-interval"]), ("memory,compute", "5"))
        self.assertEqual(ends.container("vgpu-monitor")["securityContext"]["capabilities"]["add"], ["SYS_ADMIN", "DAC_OVERRIDE", "KILL"])
        auto = Rendered({"devicePlugin": {"nvidiaDriverRoot": "auto"}})
        self.assertNotIn("nvidia-driver-root", auto.flags("device-plugin"))

    def test_plugin_pod(self):
        pod = self.changed.plugin()
        self.assertEqual((pod["hostPID"], pod["hostNetwork"], pod["runtimeClassName"], pod["nodeSelector"], pod["tolerations"]),
                         (False, True, "nvidia-test", {"gpu": "yes-please"}, [{"key": "x", "operator": "Exists"}]))
        container = self.changed.container("device-plugin")
        self.assertEqual((container["securityContext"]["privileged"], container["resources"]), (False, {"limits": {"cpu": 4}}))
        self.assertEqual(self.changed.container("vgpu-monitor")["resources"], {"limits": {"cpu": 3}})
        for name, path in (("hook", "/opt/gpu/vgpu"), ("device-plugins", "/data/plugins"), ("driver-root", "/run/nvidia/driver"),
                           ("toolkit-ready", "/run/nvidia/validations/toolkit-ready")):
            self.assertEqual(self.changed.volume(name)["hostPath"]["path"], path)
        self.assertEqual(self.changed.objects["DaemonSet", "vgpu-device-plugin"]["spec"]["updateStrategy"]["type"], "OnDelete")
        self.assertEqual(self.changed.objects["RuntimeClass", "nvidia-test"]["handler"], "nvidia")
        self.assertEqual(json.loads(self.changed.objects["ConfigMap", "vgpu-device-plugin"]["data"]["config.json"])["nodeconfig"][0]["name"], "n1")
        outside = Rendered({"devicePlugin": {"nodeConfiguration": {"externalConfigName": "theirs"}}})
        self.assertEqual(outside.volume("config")["configMap"]["name"], "theirs")
        self.assertNotIn(("ConfigMap", "vgpu-device-plugin"), outside.objects)
        self.assertEqual(self.plain.plugin()["nodeSelector"], {"gpu": "on"})
        self.assertNotIn("driver-root", json.dumps(self.plain.plugin()))
        self.assertNotIn("DaemonSet", Rendered({"devicePlugin": {"enabled": False}}).kinds)

    def test_own_pods_are_not_ours(self):
        for kind, name in (("Deployment", "vgpu-scheduler"), ("DaemonSet", "vgpu-device-plugin")):
            self.assertEqual(self.plain.objects[kind, name]["spec"]["template"]["metadata"]["labels"]["hami.io/webhook"], "ignore")

    def test_nothing_is_in_a_folder_of_all_users(self):
        volumes = self.plain.objects["DaemonSet", "vgpu-device-plugin"]["spec"]["template"]["spec"]["volumes"]
        paths = [volume["hostPath"]["path"] for volume in volumes if "hostPath" in volume]
        self.assertIn("/run/cantaloupe", paths)
        self.assertEqual([path for path in paths if path.startswith(("/tmp", "/var/tmp", "/dev/shm"))], [])

    def test_accounts_agree(self):
        one = Rendered({"scheduler": {"serviceAccountName": "s"}, "devicePlugin": {"serviceAccountName": "p"}, "namespaceOverride": "space"})
        self.assertEqual(one.flags("vgpu-scheduler")["trusted-users"], "system:serviceaccount:space:s,system:serviceaccount:space:p")
        more = Rendered({"scheduler": {"admissionWebhook": {"trustedUsers": ["system:serviceaccount:kube-system:hami-device-plugin", "b"]}}})
        self.assertEqual(more.flags("vgpu-scheduler")["trusted-users"].split(",")[2:], ["system:serviceaccount:kube-system:hami-device-plugin", "b"])
        for (kind, _), o in one.objects.items():
            if kind.endswith("RoleBinding"):
                self.assertIn((o["subjects"][0]["name"], o["subjects"][0]["namespace"]), (("s", "space"), ("p", "space")))

    def test_what_cannot_work_is_refused(self):
        for values, words in (({"devicePlugin": {"libPath": "/elsewhere"}}, "libPath"), ({"devicePlugin": {"monitor": {"ctrPath": "/elsewhere"}}}, "ctrPath"),
                              ({"image": {"repositry": "x"}}, "repositry"), ({"devicePlugin": {"deviceSplitCount": 0}}, "deviceSplitCount"),
                              ({"scheduler": {"defaultSchedulerPolicy": {"nodeSchedulerPolicy": "bin"}}}, "nodeSchedulerPolicy"),
                              ({"resourceName": "gpu"}, "resourceName"), ({"scheduler": {"replicas": "two"}}, "replicas")):
            done = helm(values)
            self.assertNotEqual(done.returncode, 0, values)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    if not os.access(HELM, os.X_OK):
        print(f"no Helm at {HELM}; tests/cluster/build.sh helm builds it")
        sys.exit(SKIPPED)
    PROGRAMS.update(zip(("vgpu-scheduler", "device-plugin", "vgpu-monitor"), sys.argv[1:4]))
    unittest.main(argv=sys.argv[:1])
