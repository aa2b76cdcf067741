#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""monitoring.py MONITOR MAKE-SLICES NVML SCHEDULER FOLDER-OF-CLUSTER FOLDER-OF-WEB-TESTS [TEST...]: alerts and the dashboard.

Each rule fires and rests by promtool, and a Prometheus that scrapes the programs knows each name and label that they use.
monitoring.py --make writes deploy/prometheus-rule.yaml from deploy/alerts.yaml."""

import http.client
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
RULE_HEAD = """# SPDX-License-Identifier: Apache-2.0
# Made by tests/deploy/monitoring.py --make from alerts.yaml.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: cantaloupe
  namespace: kube-system
  labels: {app.kubernetes.io/name: cantaloupe}
spec:
"""
SLICE = '{namespace="ml",pod="p",container="c",device_uuid="GPU-1"}'
DEVICE = '{node="n1",device_uuid="GPU-1",instance="i"}'
# By alert: the series with which it fires, those with which it rests, and the minute of both. "a+bxn": a, and n times b more.
CASES = {
    "VgpuSliceMemoryRefused": ([f"vgpu_slice_memory_refusals_total{SLICE} 0+1x20"], [f"vgpu_slice_memory_refusals_total{SLICE} 7+0x20"], 15),
    "VgpuSliceMemoryNearlyFull": (
        [f"vgpu_slice_memory_used_bytes{SLICE} 96+0x40", f"vgpu_slice_memory_quota_bytes{SLICE} 100+0x40"],
        [f"vgpu_slice_memory_used_bytes{SLICE} 90+0x40", f"vgpu_slice_memory_quota_bytes{SLICE} 100+0x40"], 30),
    "VgpuSliceWaits": (
        [f"vgpu_slice_compute_turn_wait_seconds_total{SLICE} 0+30x40", f"vgpu_slice_compute_seconds_total{SLICE} 0+10x40",
         f"vgpu_slice_compute_granted_ratio{SLICE} 0.5+0x40"],
        [f"vgpu_slice_compute_turn_wait_seconds_total{SLICE} 0+30x40", f"vgpu_slice_compute_seconds_total{SLICE} 0+29x40",
         f"vgpu_slice_compute_granted_ratio{SLICE} 0.5+0x40"], 30),
    "VgpuSliceSuspended": ([f"vgpu_slice_is_suspended{SLICE} 1+0x90"], [f"vgpu_slice_is_suspended{SLICE} 1+0x50 0+0x40"], 80),
    "VgpuSliceShareNotApplied": ([f"vgpu_slice_is_pending{SLICE} 1+0x30"], [f"vgpu_slice_is_pending{SLICE} 0+0x30"], 20),
    "VgpuSliceBooksDiffer": ([f"vgpu_slice_memory_corrections_total{SLICE} 0+1x60"],
                             [f"vgpu_slice_memory_corrections_total{SLICE} 0+0x20 1+0x40"], 45),
    "VgpuContainerViolates": ([f"vgpu_container_is_violating{SLICE[:-1]},kind=\"memory\"}} 1+0x10"],
                              [f"vgpu_container_is_violating{SLICE[:-1]},kind=\"memory\"}} 0+0x10"], 5),
    "VgpuProcessEnded": (['vgpu_audit_processes_ended_total{kind="memory"} 0+0x5 1+0x10'],
                         ['vgpu_audit_processes_ended_total{kind="memory"} 1+0x15'], 8),
    "VgpuDeviceMemoryFull": (
        [f"hami_host_gpu_memory_used_bytes{DEVICE} 98+0x30", f"hami_gpu_memory_limit_bytes{DEVICE} 100+0x30"],
        [f"hami_host_gpu_memory_used_bytes{DEVICE} 90+0x30", f"hami_gpu_memory_limit_bytes{DEVICE} 100+0x30"], 20),
    "VgpuNoMonitor": (["up 1+0x30"], [f"hami_host_gpu_memory_used_bytes{DEVICE} 1+0x30"], 20),
    "VgpuNoScheduler": (["up 1+0x30"], ["vgpu_scheduler_nodes 0+0x30"], 20),
    "VgpuSchedulerWithoutLeader": (['vgpu_scheduler_is_leader{instance="a"} 0+0x9', 'vgpu_scheduler_is_leader{instance="b"} 0+0x9'],
                                   ['vgpu_scheduler_is_leader{instance="a"} 0+0x9', 'vgpu_scheduler_is_leader{instance="b"} 1+0x9'], 8),
    "VgpuSchedulerDoesNotKnowCluster": (["vgpu_scheduler_is_known 0+0x20"], ["vgpu_scheduler_is_known 0+0x3 1+0x16"], 15),
    "VgpuBindsWait": (["vgpu_scheduler_binds_waiting 20+0x30"], ["vgpu_scheduler_binds_waiting 20 0 20 0 20 0 20 0 20 0 20 0 20 0 20 0 20"], 16),
    "VgpuSchedulerSlow": (
        ['vgpu_scheduler_request_duration_seconds_bucket{verb="filter",le="1"} 0+0x30',
         'vgpu_scheduler_request_duration_seconds_bucket{verb="filter",le="2"} 0+60x30',
         'vgpu_scheduler_request_duration_seconds_bucket{verb="filter",le="+Inf"} 0+60x30'],
        ['vgpu_scheduler_request_duration_seconds_bucket{verb="filter",le="1"} 0+60x30',
         'vgpu_scheduler_request_duration_seconds_bucket{verb="filter",le="2"} 0+60x30',
         'vgpu_scheduler_request_duration_seconds_bucket{verb="filter",le="+Inf"} 0+60x30'], 25),
    "VgpuSchedulerRequestsFail": (['vgpu_scheduler_request_failures_total{verb="bind"} 0+60x30'],
                                  ['vgpu_scheduler_request_failures_total{verb="webhook"} 0+60x30',
                                   'vgpu_scheduler_request_failures_total{verb="bind"} 0+1x30'], 25),
    "VgpuPodsFindNoMemory": (
        ['vgpu_scheduler_node_rejections_total{reason="CardInsufficientMemory"} 0+1x90', f"hami_gpu_memory_allocated_bytes{DEVICE} 95+0x90",
         f"hami_gpu_memory_limit_bytes{DEVICE} 100+0x90"],
        ['vgpu_scheduler_node_rejections_total{reason="CardInsufficientMemory"} 0+1x90', f"hami_gpu_memory_allocated_bytes{DEVICE} 50+0x90",
         f"hami_gpu_memory_limit_bytes{DEVICE} 100+0x90"], 60),
    "VgpuQuotaExhausted": (
        ['hami_resource_quota_used{namespace="a",quota_name="q",limit="100"} 96+0x30', 'hami_resource_quota_limit{namespace="a",quota_name="q"} 100+0x30'],
        ['hami_resource_quota_used{namespace="a",quota_name="q",limit="100"} 80+0x30', 'hami_resource_quota_limit{namespace="a",quota_name="q"} 100+0x30'],
        20),
}
ROOT = DEPLOY.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.path.append(str(ROOT / "tests"))
from cases import SKIPPED, equal, run  # noqa: E402 pylint: disable=wrong-import-position
import metrics as tables  # noqa: E402 pylint: disable=wrong-import-position


def made():
    text = (DEPLOY / "alerts.yaml").read_text()
    return RULE_HEAD + "".join("  " + line for line in text[text.index("groups:"):].splitlines(True))


def rules():
    """Names and expressions; the file is plain enough for that."""
    return re.findall(r'- alert: (\w+)\n +expr: (".*")\n', (DEPLOY / "alerts.yaml").read_text())


def expressions():
    found = [(name, json.loads(expr)) for name, expr in rules()]
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            found.append((panel["title"], target["expr"]))
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"]).groups()
            found.append((f"${variable['name']}", f"count by ({label}) ({metric})"))
    return found


def the_operators_form_is_the_same():
    equal((DEPLOY / "prometheus-rule.yaml").read_text(), made())


def each_rule_fires_and_rests():
    equal(sorted(CASES), sorted(name for name, _ in rules()))
    tests = []
    for name, (fires, rests, minute) in CASES.items():
        for series, value in ((fires, 1), (rests, None)):
            expr = f'count(ALERTS{{alertname="{name}",alertstate="firing"}})'
            tests.append({"interval": "1m", "name": f"{name} {'fires' if value else 'rests'}",
                          "input_series": [{"series": one.split(" ", 1)[0] if "{" not in one else one[:one.index("}") + 1],
                                            "values": one.split(" ", 1)[1] if "{" not in one else one[one.index("}") + 2:]} for one in series],
                          "promql_expr_test": [{"expr": expr, "eval_time": f"{minute}m",
                                                "exp_samples": [{"labels": "{}", "value": value}] if value else []}]})
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "test.json"
        file.write_text(json.dumps({"rule_files": [str(DEPLOY / "alerts.yaml")], "evaluation_interval": "1m", "tests": tests}))
        done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, timeout=600, check=False)
        equal((done.returncode, done.stdout + done.stderr if done.returncode else ""), (0, ""))
    done = subprocess.run(["promtool", "check", "rules", DEPLOY / "alerts.yaml"], capture_output=True, text=True, timeout=600, check=False)
    equal((done.returncode, f"{len(CASES)} rules found" in done.stdout), (0, True))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Prometheus:
    """It scrapes these ports each second."""

    def __init__(self, ports):
        self.folder = tempfile.TemporaryDirectory(prefix="vgpu-prometheus-", ignore_cleanup_errors=True)
        self.port = self.process = None
        config = pathlib.Path(self.folder.name) / "config.json"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "500ms"}, "rule_files": [str(DEPLOY / "alerts.yaml")],
            "scrape_configs": [{"job_name": "cantaloupe", "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}]}]}))
        for _ in range(5):
            self.start(config)
            if self.process.poll() is None:
                break

    def start(self, config):
        """Until it answers, or ends because somebody else has taken the port meanwhile."""
        self.port = free_port()
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder.name}/data", f"--web.listen-address=127.0.0.1:{self.port}",
             "--log.level=warn"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < until:
            try:
                self.ask("query", query="1")
                return
            except (OSError, ValueError):
                time.sleep(0.1)

    def ask(self, path, **query):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", f"/api/v1/{path}?{urllib.parse.urlencode(query)}")
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        if answer["status"] != "success":
            raise AssertionError(f"{query}: {answer}")
        return answer["data"]

    def up(self):
        try:
            return len([one for one in self.ask("query", query="count_over_time(up[10s])")["result"] if float(one["value"][1]) > 3])
        except (OSError, ValueError):
            return 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.folder.cleanup()


def each_name_is_one_that_the_programs_tell():
    from cluster import Scheduler, Town, device, node, pod, wait_for  # pylint: disable=import-outside-toplevel
    from stage import Node, request, some_slices  # pylint: disable=import-outside-toplevel
    with Town() as town:
        town.cluster.put("nodes", node("n1", [device(0)]))
        town.cluster.put("resourcequotas", {"metadata": {"name": "q", "namespace": "default"},
                                            "spec": {"hard": {"limits.nvidia.com/gpumem": "5000", "limits.nvidia.com/gpucores": "50"}}})
        with Node(sys.argv[1:4], metrics="127.0.0.1:0", environment={"KUBECONFIG": str(town.kubeconfig)}, flags=("--node-name=n1",)) as monitor, \
                Scheduler(sys.argv[4], town, metrics=True) as scheduler:
            uuids = [label for label in re.findall(r'hami_host_gpu_memory_used_bytes\{.*?device_uuid="([^"]+)"',
                                                   request(monitor.port, "/metrics")[2].decode())]
            for one in some_slices(uuids):
                item = pod(one["pod"], uid=one["pod"])
                item["spec"]["nodeName"] = "n1"
                town.cluster.put("pods", item)
            monitor.add(some_slices(uuids))
            for name in ("a", "b"):
                town.cluster.put("pods", pod(name, memory=3000))
                waiting = town.cluster.get("pods", f"default/{name}")
                answer = scheduler.filter(waiting, ["n1", "n2"])
                if answer["NodeNames"]:
                    equal(scheduler.bind(waiting, "n1"), "")
            with Prometheus([monitor.port, scheduler.metrics_port]) as prometheus:
                # the last does not fit, and is refused again and again
                wait_for(lambda: scheduler.filter(waiting, ["n1", "n2"]) and prometheus.up() == 2, "scrapes", 90)
                until = time.monotonic() + 60
                while True:
                    scheduler.filter(waiting, ["n1", "n2"])
                    try:
                        judge(prometheus)
                        break
                    except AssertionError:  # a rate is of some scrapes, of which one may be late
                        if time.monotonic() > until:
                            raise
                        time.sleep(1)


def judge(prometheus):
    told = {}
    for series in prometheus.ask("series", **{"match[]": '{job="cantaloupe"}'}):
        told.setdefault(series["__name__"], set()).update(series)
    alerts = {one["name"]: one for group in prometheus.ask("rules")["groups"] for one in group["rules"]}
    equal(([one["name"] for one in alerts.values() if one.get("lastError")], len(alerts)), ([], len(CASES)))
    unseen = {name for name in tables.read(ROOT) if name.startswith("vgpu_container_")}  # told only while the audit has something to tell of
    for where, expr in expressions():
        expr = expr.replace("$__rate_interval", "5s").replace("$node", ".*").replace("$namespace", ".*").replace("$pod", ".*")
        names, _ = tables.names_and_labels(expr)
        equal((where, names - set(told) - unseen), (where, set()))
        result = prometheus.ask("query", query=expr)["result"]
        if where not in CASES and not names & unseen and "Suspended" not in where and not result:
            raise AssertionError(f"{where} shows nothing: {expr}")
    print(f"      {len(expressions())} expressions, {len(told)} metrics told")


def the_dashboard_is_whole():
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    panels = dashboard["panels"]
    equal(len({panel["id"] for panel in panels}), len(panels))
    cells = set()
    for panel in panels:
        place = panel["gridPos"]
        equal((panel["title"], place["x"] + place["w"] <= 24), (panel["title"], True))
        covered = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        equal((panel["title"], bool(covered & cells)), (panel["title"], False))
        cells |= covered
    names = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(panels)))
    equal(used - names, set())


def main():
    if sys.argv[1:] == ["--make"]:
        (DEPLOY / "prometheus-rule.yaml").write_text(made())
        return 0
    lacks = [name for name in ("prometheus", "promtool") if not shutil.which(name)]
    sys.path += sys.argv[5:7]
    cases = [the_operators_form_is_the_same, the_dashboard_is_whole]
    if lacks:
        print(f"no {' and no '.join(lacks)} here: apt-get install prometheus")
    else:
        cases += [each_rule_fires_and_rests, each_name_is_one_that_the_programs_tell]
    return run(cases, sys.argv[7:]) or (SKIPPED if lacks else 0)


if __name__ == "__main__":
    sys.exit(main())
