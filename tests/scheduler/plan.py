#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plan.py VGPU VGPU_PLAN VGPU_SCHEDULER VECTORS [TEST...]: `vgpu plan` and `vgpu explain`, over files, before an API server in
memory, and beside the scheduler itself; one test a function below."""

import copy
import json
import os
import pathlib
import subprocess
import sys
import time

from cluster import LOCK, Scheduler, Town, device, node, pod, wait_for

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import cases  # noqa: E402 pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).with_name("plan")
NODES, RUNNING, WANTED = (str(HERE / name) for name in ("nodes.yaml", "running.yaml", "wanted.yaml"))
VGPU, PLAN, SCHEDULER, VECTORS = sys.argv[1:5]


def run(*words, text=None, kubeconfig=None):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
    environment["HOME"] = "/nonexistent"
    if kubeconfig:
        environment["KUBECONFIG"] = str(kubeconfig)
    done = subprocess.run([PLAN, *words], input=text, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert done.returncode in (0, 1, 2, 3), (done.returncode, done.stderr)
    return done


def plan(*words, **more):
    done = run("plan", *words, **more)
    assert done.returncode in (0, 1), done.stderr
    return done


def answers(*words, **more):
    done = plan("--json", *words, **more)
    said = json.loads(done.stdout)
    assert said["is_all_placed"] == (done.returncode == 0)
    return {f"{row['namespace']}/{row['pod']}": row for row in said["pods"]}


def reasons(answer):
    return {row["node"]: row["reason"] for row in answer["nodes"] if "reason" in row}


def yaml_of(*objects):
    return "\n---\n".join(map(json.dumps, objects))


def refused(text, *words):
    """What is said of input that is not understood."""
    done = run("plan", "--nodes", "-", *words, text=text)
    assert done.returncode == 2 and not done.stdout, (done.returncode, done.stdout, done.stderr)
    return done.stderr


# Files.


def test_a_manifest_is_placed_and_every_other_node_says_why_not():
    said = answers("--nodes", NODES, "--pods", RUNNING, "--pods", WANTED)
    assert list(said) == ["team/serve-0", "team/serve-1", "default/large", "default/plain"]
    first = said["team/serve-0"]
    assert first["node"] == "n1" and first["devices"] == [
        {"uuid": "GPU-1", "index": 1, "type": "NVIDIA A30", "memory_mib": 4000, "cores_percent": 20, "container": "main"}]
    assert reasons(first) == {"n2": "untolerated taint {gpu: yes}", "n3": "the node is cordoned", "n4": "node unregistered"}
    assert said["team/serve-1"]["devices"][0]["index"] == 1, "beside the first: the other is fuller"
    large = said["default/large"]
    assert large["state"] == "pending" and large["asks"][0] == {
        "container": "main", "kind": "app", "devices": 1, "memory_mib": 20000, "cores_percent": 0}, "the webhook added the device"
    assert reasons(large) == {"n1": "2/2 CardInsufficientMemory", "n2": "2/2 CardInsufficientMemory",
                              "n3": "node unregistered", "n4": "node unregistered"}
    hints = {row["node"]: row["hint"] for row in large["nodes"] if "hint" in row}
    assert "no device plugin" in hints["n3"] and "allocatable" in hints["n4"]
    assert said["default/plain"]["state"] == "not_ours"


def test_devices_have_scores_and_what_is_used():
    said = answers("--nodes", NODES, "--pods", RUNNING, "--pods", WANTED)["team/serve-0"]
    n1 = next(row for row in said["nodes"] if row["node"] == "n1")
    assert n1["answer"] == "chosen" and round(n1["score"], 3) == round(10 * (2 / 20 + 7000 / 20000 + 50 / 200), 3)
    used = n1["devices"][0]
    assert (used["slots_used"], used["memory_used_mib"], used["cores_used_percent"]) == (2, 7000, 50)
    assert used["containers"] == [{"container": "main", "would_do": False, "reason": "CardInsufficientMemory", "memory_mib": 4000,
                                   "cores_percent": 20, "score": used["containers"][0]["score"]}]
    assert n1["devices"][1]["containers"][0]["would_do"]
    assert said["policy"] == {"node": "binpack", "device": "spread", "is_numa_bound": False, "weights": {"slot": 1, "core": 1, "memory": 1}}


def test_a_person_is_told_in_words():
    text = plan("--nodes", NODES, "--pods", RUNNING, "--pods", WANTED).stdout
    for line in ("default/large  -     fits nowhere", "team/serve-0   n1    1 GPU-1          4000 MiB  20 %",
                 "  n1, n2: 2/2 CardInsufficientMemory", "  n3: the node is cordoned (says kube-scheduler)",
                 "CardInsufficientMemory: too little of the device's memory is left"):
        assert line in text.splitlines(), (line, text)
    assert "score" not in text.replace("chosen, score", ""), text
    assert "policy: nodes by spread" in plan("--nodes", NODES, "--pods", WANTED, "--scores", "--node-policy=spread").stdout


def test_a_node_that_is_not_there():
    wanted = ["--nodes", NODES, "--pods", RUNNING, "--pods", WANTED]
    form = "name=n9,type=NVIDIA-H100-80GB-HBM3,gpus=2,memory=81559Mi,split=10"
    said = answers(*wanted, "--add-node", form)
    assert said["default/large"]["node"] == "n9" and plan(*wanted, "--add-node", form).returncode == 0
    said = answers(*wanted, "--add-node", "like=n2", "--drain=n1")
    assert reasons(said["team/serve-0"])["like-n2"] == "untolerated taint {gpu: yes}", "it is as n2 is"
    for text, words in (("name=n9", "type, gpus and memory"), ("like=n7", "'n7'"), (form.replace("n9", "n1"), "no node has"),
                        (form.replace("81559Mi", "many"), "81559Mi or 80Gi"), (form + ",cpus=1", "'cpus'"), (form.replace("=2", "=0"), "1 to 64")):
        done = run("plan", *wanted, "--add-node", text)
        assert done.returncode == 2 and words in done.stderr, (text, done.stderr)


def test_a_drained_node_gives_its_pods_to_others():
    said = answers("--nodes", NODES, "--pods", RUNNING, "--drain", "n1")
    assert said["team/agent"]["state"] == "goes with its node", "a DaemonSet's"
    assert said["team/old"]["is_moved"] and reasons(said["team/old"])["n1"] == "the node is drained"
    assert list(said) == ["team/old", "team/agent"], "not the one that has ended"
    said = answers("--nodes", NODES, "--pods", RUNNING, "--drain", "n1", "--add-node", "like=n1")
    assert said["team/old"]["node"] == "like-n1" and said["team/old"]["devices"][0]["memory_mib"] == 6000
    assert "no such node" in run("plan", "--nodes", NODES, "--drain", "n8").stderr


def test_a_quota_and_the_webhook_count():
    quota = {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "team"}, "spec": {"hard": {"limits.nvidia.com/gpumem": "11000"}}}
    said = answers("--nodes", NODES, "--pods", RUNNING, "--pods", WANTED, "--pods", "-", text=yaml_of(quota))
    assert said["team/serve-0"]["quota"] == {"memory_left_mib": 4000} and said["team/serve-0"]["node"] == "n1"
    assert said["team/serve-1"] == {"namespace": "team", "pod": "serve-1", "state": "refused", "why": "exceeding resource quota"}
    forged = pod("forged", annotations={"hami.io/vgpu-node": "n1", "hami.io/vgpu-time": "99999999999",
                                        "hami.io/vgpu-devices-allocated": "GPU-0,NVIDIA,10000,100:;"})
    said = answers("--nodes", NODES, "--pods", "-", text=yaml_of({"kind": "Pod", **forged}))
    assert said["default/forged"]["devices"][0]["memory_mib"] == 1000, "what a new pod claims is nothing"


def running(name, memory, priority, where="n"):
    item = pod(name, uid=name, annotations={"hami.io/vgpu-node": where, "hami.io/vgpu-devices-allocated": f"GPU-0,NVIDIA,{memory},0:;"})
    item["spec"].update(nodeName=where, priority=priority)
    return {"kind": "Pod", **item, "status": {"phase": "Running"}}


def test_pods_of_lower_priority_that_are_in_the_way_are_named():
    objects = [{"kind": "Node", **node("n", [device(0, 10000, count=2)])}, running("low", 6000, 5), running("lower", 3000, 1),
               {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100},
               {"kind": "PriorityClass", "metadata": {"name": "calm"}, "value": 90, "preemptionPolicy": "Never"}]

    def wanted(name, memory, **spec):
        item = pod(name, memory=memory)
        item["spec"].update(spec)
        return {"kind": "Pod", **item}
    text = yaml_of(*objects, wanted("small", 4000, priorityClassName="high"), wanted("large", 7000, priorityClassName="high"),
                   wanted("calm", 7000, priorityClassName="calm"), wanted("plain", 7000))
    said = answers("--nodes", "-", text=text)
    assert list(said) == ["default/small", "default/large", "default/calm", "default/plain"], "by priority"
    assert said["default/small"]["preemption"] == {"node": "n", "is_asked": True, "ends": [{"namespace": "default", "pod": "lower"}]}
    assert [row["pod"] for row in said["default/large"]["preemption"]["ends"]] == ["low"]
    assert "preemption" not in said["default/calm"] and "preemption" not in said["default/plain"]
    assert "would fit on n if these ended: default/lower; they are of lower priority, and kube-scheduler may end them" in \
        plan("--nodes", "-", text=text).stdout
    text = text.replace('"count": 2', '"count": 10').replace('\\"count\\": 2', '\\"count\\": 10')
    assert not answers("--nodes", "-", text=text)["default/small"]["preemption"]["is_asked"], "slices are left"
    done = run("plan", "--nodes", "-", text=yaml_of(objects[0], wanted("p", 100, priorityClassName="none")))
    assert done.returncode == 0 and "no PriorityClass 'none' is known; it counts as 0" in done.stderr, done.stderr
    assert run("plan", "--nodes", "-", text=yaml_of({"kind": "PriorityClass", "metadata": {"name": "x"}})).returncode == 2


def test_what_kube_scheduler_says_is_named():
    wanted = {"kind": "Pod", **pod("p")}
    wanted["spec"]["nodeSelector"] = {"zone": "b"}
    said = answers("--nodes", NODES, "--pods", "-", text=yaml_of(wanted))["default/p"]
    assert reasons(said)["n1"] == "nodeSelector wants zone=b, and the node has a"
    wanted["spec"]["nodeSelector"] = {}
    for operator, values, fits in (("In", ["a", "c"], True), ("NotIn", ["a"], False), ("Exists", [], True), ("DoesNotExist", [], False),
                                   ("Gt", ["1"], False)):
        term = {"matchExpressions": [{"key": "zone", "operator": operator, "values": values}]}
        wanted["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
        said = answers("--nodes", NODES, "--pods", "-", text=yaml_of(wanted))["default/p"]
        assert (said.get("node") == "n1") == fits, (operator, said)
    wanted["spec"]["affinity"] = {}
    for toleration, fits in (({"key": "gpu", "value": "yes"}, True), ({"key": "gpu", "value": "no"}, False),
                             ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False), ({"operator": "Exists"}, True)):
        wanted["spec"]["tolerations"] = [toleration]
        said = answers("--nodes", NODES, "--pods", "-", text=yaml_of(wanted))["default/p"]
        assert ("n2" not in reasons(said)) == fits, (toleration, said)


def test_bad_input_is_named():
    good = {"kind": "Node", "metadata": {"name": "a"}}
    register = {"hami.io/node-nvidia-register": '[{"id":"GPU-0","count":-1}]'}
    bad_register = {"kind": "Node", "metadata": {"name": "a", "annotations": register}, "status": {"allocatable": {"nvidia.com/gpu": 1}}}
    for text, words in (
            ("a: [1", "standard input, line 2"), ("kind: Node\nmetadata: {name: a}\nkind: Pod\n", "line 3: key 'kind' is there twice"),
            ("just words", "line 1: this is no object"), ("metadata: {}", "kind is missing"), ("kind: Pod\n", "metadata is missing"),
            (yaml_of(good, good), "line 3: Node a: node a is there twice"),
            (yaml_of({"kind": "Pod", "metadata": {"name": "p"}}), "Pod p: spec.containers is missing"),
            (yaml_of({"kind": "Pod", "metadata": {}, "spec": {"containers": [{}]}}), "metadata.name is missing"),
            ('{"kind": "List", "items": [{"kind": "Node", "metadata": {}}]}', "item 1: Node : metadata.name"),
            (yaml_of({"kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {}}}), "spec.template.spec"),
            (yaml_of({"kind": "Job", "metadata": {"name": "j"}, "spec": {"parallelism": -1, "template": {"spec": {"containers": [{}]}}}}),
             "spec.parallelism is no number from 0 to 10000"),
            (yaml_of(bad_register), "Node a: device 0 of hami.io/node-nvidia-register: count, devmem"),
            ("a: &a [*a]", "alias names no anchor"), ("<<: {}", "merge keys"), ("[" * 200, "more than 100"), ('a: "\\0"', "zero byte"),
            ("a: &a " + "[" * 90 + "1" + "]" * 90 + "\nb: &b [" + "*a," * 900 + "]\nc: [" + "*b," * 900 + "]", "aliases stand for too much")):
        assert words in refused(text), (text[:80], refused(text))
    assert "vgpu help plan" in refused("", "--what") and "needs a value" in refused("", "--drain")
    assert "binpack or spread" in refused("", "--node-policy=pack")
    assert run("plan", "--nodes", "/nonexistent/f").returncode == 2 and run("plan", "--nodes", "/").returncode == 2
    assert run("explain", "--nodes", NODES).returncode == 2 and run("explain", "nobody", "--nodes", NODES).returncode == 2
    assert run("plan", "--config", "/nonexistent/f", "--nodes", NODES).returncode == 2
    assert run("plan").returncode == 3, "there is no cluster"
    assert run().returncode == 2 and run("--version").returncode == 0


def test_a_configuration_is_the_schedulers():
    with Town() as town:
        config = pathlib.Path(town.folder.name, "config.yaml")
        config.write_text("nvidia: {resourceCountName: my/gpu, resourceMemoryName: my/mem, defaultMemory: 3000}")
        items = [{"kind": "Node", **node("a", [device(0)])}, {"kind": "Pod", **pod("p")}]
        items[0]["status"]["allocatable"] = {"my/gpu": "10"}
        items[1]["spec"]["containers"][0]["resources"]["limits"] = {"my/gpu": 1}
        said = answers("--config", str(config), "--nodes", "-", text=yaml_of(*items))["default/p"]
        assert said["devices"][0]["memory_mib"] == 3000


def test_vgpu_hands_over_and_knows_the_help():
    done = subprocess.run([VGPU, "plan", "--nodes", NODES, "--pods", WANTED], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "fits nowhere" in done.stdout, done
    done = subprocess.run([VGPU, "plan", "--drain", "x", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "--add-node" in done.stdout
    with Town() as town:
        alone = pathlib.Path(town.folder.name, "vgpu")
        alone.write_bytes(pathlib.Path(VGPU).read_bytes())
        alone.chmod(0o755)
        done = subprocess.run([alone, "explain", "p"], capture_output=True, text=True, env={"PATH": "/nonexistent"}, check=False)
        assert done.returncode == 1 and "needs vgpu-plan, which is not beside vgpu" in done.stderr, done


def test_texts_are_harmless():
    evil = pod("p\x1b[2Jq")
    said = plan("--nodes", NODES, "--pods", "-", text=yaml_of({"kind": "Pod", **evil})).stdout
    assert "\x1b" not in said and "?[2Jq" in said, said


# Before an API server.


def put_town(town):
    town.cluster.put("nodes", node("a", [device(0), device(1)], "20"))
    town.cluster.put("nodes", node("b", [device(2)], "10"))
    holder = pod("holder", annotations={"hami.io/vgpu-node": "a", "hami.io/vgpu-devices-allocated": "GPU-0,NVIDIA,9000,0:;",
                                        "hami.io/bind-phase": "success"})
    holder["spec"]["nodeName"] = "a"
    holder["status"]["phase"] = "Running"
    town.cluster.put("pods", holder)


def explain(town, *words):
    done = run("explain", "--json", *words, kubeconfig=town.kubeconfig)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout), done.returncode


def test_a_cluster_is_read_once_and_not_changed():
    with Town() as town:
        put_town(town)
        town.cluster.put("pods", pod("second", 9500, creationTimestamp="2026-01-02T00:00:00Z"))
        town.cluster.put("pods", pod("first", 9500, creationTimestamp="2026-01-01T00:00:00Z"))
        town.cluster.put("pods", pod("third", 9500, creationTimestamp="2026-01-03T00:00:00Z"))
        town.cluster.put("pods", pod("plain", gpus=0))
        version = town.cluster.version
        said = answers(kubeconfig=town.kubeconfig)
        assert list(said) == ["default/first", "default/second", "default/third"], "by age"
        assert (said["default/first"]["node"], said["default/second"]["node"], said["default/third"]["state"]) == ("a", "b", "pending")
        assert version == town.cluster.version and {call[0] for call in town.cluster.calls} == {"GET"}
        said = answers("--pods", WANTED, kubeconfig=town.kubeconfig)
        assert "team/serve-0" in said and said["team/serve-0"]["node"] == "a", "priority goes first"
        assert run("plan", "--context", "other", kubeconfig=town.kubeconfig).returncode == 2


def test_a_promise_counts_while_it_is_kept():
    with Town() as town:
        put_town(town)
        promise = {"hami.io/vgpu-node": "b", "hami.io/vgpu-devices-allocated": "GPU-2,NVIDIA,8000,0:;", "hami.io/vgpu-time": str(int(time.time()))}
        town.cluster.put("pods", pod("promised", 8000, annotations=promise))
        town.cluster.put("pods", pod("stale", 8000, annotations={**promise, "hami.io/vgpu-time": "1"}))
        said = answers(kubeconfig=town.kubeconfig)
        assert said["default/promised"]["state"] == "promised" and said["default/promised"]["devices"][0]["index"] == 0
        assert said["default/stale"]["node"] == "a", "b is promised"
        whole, code = explain(town, "promised")
        assert code == 0 and "kept for it" in whole["findings"][0] and whole["node"] == "b"


def test_a_pod_that_waits_is_explained():
    with Town() as town:
        put_town(town)
        uid = town.cluster.put("pods", pod("big", 20000))
        lock = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
        town.cluster.put("nodes", node("c", [device(3)], "10", **{LOCK: f"{lock},default,gone"}))
        town.cluster.put("events", {"metadata": {"name": "e1", "namespace": "default"}, "reason": "FailedScheduling", "message": "0/2 nodes",
                                    "lastTimestamp": "2026-01-01T00:00:00Z", "involvedObject": {"name": "big", "uid": uid}})
        whole, code = explain(town, "big")
        assert code == 1 and whole["answer"]["state"] == "pending" and not whole["is_well"]
        assert reasons(whole["answer"])["a"] == "2/2 CardInsufficientMemory" and whole["events"][0]["reason"] == "FailedScheduling"
        text = run("explain", "default/big", "-n", "other", kubeconfig=town.kubeconfig).stdout
        assert "its last events:" in text and "fits nowhere" in text and "0/2 nodes" in text
        small = pod("small", 5000)
        small["spec"]["schedulingGates"] = [{"name": "wait"}]
        town.cluster.put("pods", small)
        whole, code = explain(town, "small")
        assert code == 1 and any("scheduling gate wait" in text for text in whole["findings"])
        assert [(row["node"], row["is_held"], row["pod"]) for row in whole["locks"]] == [("c", False, "gone")]
        assert whole["locks"][0]["age_s"] in range(58, 100)
        assert any("1 pod waits before it" in text for text in whole["findings"])
        assert run("explain", "nobody", kubeconfig=town.kubeconfig).returncode == 2


def test_a_pod_that_runs_is_explained():
    with Town() as town:
        put_town(town)
        whole, code = explain(town, "holder")
        assert code == 0 and whole["node"] == "a" and whole["devices"][0]["index"] == 0 and whole["bind_phase"] == "success"
        assert len(whole["findings"]) == 1, whole["findings"]
        for name, annotations, words in (
                ("odd", {"hami.io/vgpu-node": "b"}, "name node b"), ("bare", {}, "give it none"),
                ("broken", {"hami.io/vgpu-node": "a", "hami.io/vgpu-devices-allocated": "x,y:;"}, "not understood"),
                ("lost", {"hami.io/vgpu-node": "a", "hami.io/vgpu-devices-allocated": "GPU-9,NVIDIA,1,0:;"}, "GPU-9 is not registered"),
                ("over", {"hami.io/vgpu-node": "a", "hami.io/vgpu-devices-allocated": "GPU-0,NVIDIA,2000,0:;"}, "more than it has: 11000"),
                ("failed", {"hami.io/vgpu-node": "a", "hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,1,0:;", "hami.io/bind-phase": "failed"},
                 "could not give it its devices")):
            item = pod(name, annotations=annotations)
            item["spec"]["nodeName"] = "a"
            town.cluster.put("pods", item)
            whole, code = explain(town, name)
            assert any(words in text for text in whole["findings"]), (name, whole["findings"])
            assert code == (name == "failed")


def test_a_server_that_refuses():
    with Town() as town:
        put_town(town)

        def deny(_, path):
            if path.endswith("resourcequotas"):
                from cluster import Refusal
                raise Refusal(403, "you may not")
        town.cluster.fault = deny
        done = run("plan", kubeconfig=town.kubeconfig)
        assert done.returncode == 3 and "you may not" in done.stderr and "resourcequotas" in done.stderr, done


# Beside the scheduler.


FLAGS = {"--node-scheduler-policy": "--node-policy", "--gpu-scheduler-policy": "--device-policy"}


def flags_of(vector, town):
    """The scheduler's and the plan's; None where the plan has no such flag."""
    theirs, ours = [], []
    for flag in vector["config"]["flags"]:
        name, _, value = flag.partition("=")
        if name not in FLAGS:
            return None
        theirs.append(flag)
        ours.append(f"{FLAGS[name]}={value}")
    if vector["config"]["nvidia"]:
        config = pathlib.Path(town.folder.name, "config.yaml")
        config.write_text(json.dumps({"nvidia": vector["config"]["nvidia"]}))
        theirs.append(f"--device-config-file={config}")
        ours.append(f"--config={config}")
    return theirs, ours


def put_vector(vector, town):
    for number, row in enumerate(vector["nodes"]):
        town.cluster.put("nodes", {"metadata": {"name": row["name"], "labels": row.get("labels", {}), "annotations": row["annotations"]},
                                   "status": {"allocatable": row["allocatable"]}})
        for holder in row["pods"]:
            item = copy.deepcopy(holder)
            item["metadata"].setdefault("namespace", "vectors")
            item["spec"].setdefault("nodeName", row["name"])
            item["metadata"]["uid"] = f"holder-{number}-{item['metadata']['name']}"
            town.cluster.put("pods", item)
    quota = vector.get("quota")
    for number, hard in enumerate(quota if isinstance(quota, list) else [quota] if quota else []):
        town.cluster.put("resourcequotas", {"metadata": {"name": f"q{number}", "namespace": "vectors"}, "spec": {"hard": hard.get("hard", hard)}})
    item = copy.deepcopy(vector["pod"])
    item["metadata"].setdefault("namespace", "vectors")
    item.setdefault("status", {"phase": "Pending"})
    town.cluster.put("pods", item)
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def compare(vector):
    with Town() as town:
        flags = flags_of(vector, town)
        if flags is None:
            return False
        key = put_vector(vector, town)
        done = run("plan", "--json", *flags[1], kubeconfig=town.kubeconfig)
        planned = {f"{row['namespace']}/{row['pod']}": row for row in json.loads(done.stdout)["pods"]}.get(key)
        if planned is None:
            return False  # it asks for no device
        with Scheduler(SCHEDULER, town, *flags[0]) as scheduler:
            answer = scheduler.filter(town.cluster.get("pods", key), vector["nodeNames"])
            if answer["NodeNames"]:  # it is written a moment later
                wait_for(lambda: town.cluster.get("pods", key)["metadata"].get("annotations", {}).get("hami.io/vgpu-node") == answer["NodeNames"][0], "the promise")
        said = town.cluster.annotations("pods", key)
        ours = (planned.get("node"), {name: text for name, text in reasons(planned).items() if not planned.get("node")})
        theirs = ((answer["NodeNames"] or [None])[0], answer["FailedNodes"] or {})
        assert ours == theirs, (vector["id"], ours, theirs)
        if ours[0]:
            devices = [(row["uuid"], row["memory_mib"], row["cores_percent"]) for row in planned["devices"]]
            written = [part.split(",") for slot in said["hami.io/vgpu-devices-allocated"].split(";") for part in slot.split(":") if part]
            assert devices == [(part[0], int(part[2]), int(part[3])) for part in written], (vector["id"], devices, written)
        return True


def test_it_decides_as_the_scheduler_does():
    """Of each class of recordings the first two, by the running scheduler and by the plan over the same API server."""
    seen, checked = {}, 0
    with open(VECTORS, encoding="utf-8") as lines:
        for vector in map(json.loads, lines):
            names = {row["name"] for row in vector.get("nodes", [])}
            if vector["request"] != "filter" or vector["result"].get("error") or set(vector["nodeNames"]) != names:
                continue
            seen[vector["class"]] = seen.get(vector["class"], 0) + 1
            if seen[vector["class"]] <= 2:
                checked += compare(vector)
    assert checked >= 20, checked


if __name__ == "__main__":
    sys.exit(cases.run(cases.collect(globals()), sys.argv[5:]))
