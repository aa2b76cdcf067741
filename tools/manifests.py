#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests.py HELM [--check]: renders the chart into the manifests of deploy/, for clusters without Helm. With --check writes
nothing, and says which of them is not what the chart says."""

import os
import re
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
CHART = os.path.join(ROOT, "deploy/charts/cantaloupe")
RELEASE, SPACE = "vgpu", "kube-system"
# whose kube-scheduler the manifests name; with another cluster the line is changed
KUBERNETES = "1.35.4"
# each file's template, where it is one alone, and the switch that the file is there for
FILES = {"deploy/cantaloupe.yaml": (None, None), "deploy/scheduler-rbac.yaml": ("scheduler/rbac.yaml", None),
         "deploy/monitor-rbac.yaml": ("device-plugin/monitor-rbac.yaml", "devicePlugin.monitor.ownAccount"),
         "deploy/service-monitor.yaml": ("service-monitors.yaml", "prometheus.enabled")}
HEADER = """# SPDX-License-Identifier: Apache-2.0
# Made by `make manifests` of deploy/charts/cantaloupe: what its values' defaults%s say, in namespace %s.
"""


def render(helm, template, switch):
    options = (["--show-only", f"templates/{template}"] if template else []) + (["--set", f"{switch}=true"] if switch else [])
    text = subprocess.run([helm, "template", RELEASE, CHART, "--namespace", SPACE, "--kube-version", KUBERNETES, *options],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    # Helm is not what applies them
    text = re.sub(r"^ *app.kubernetes.io/managed-by: Helm\n|^# Source: .*\n|^ +$\n?", "", text, flags=re.M)
    return HEADER % (f" and {switch}" if switch else "", SPACE) + text


def main():
    stale = 0
    for path, (template, switch) in FILES.items():
        text, full = render(sys.argv[1], template, switch), os.path.join(ROOT, path)
        there = open(full, encoding="utf-8").read() if os.path.exists(full) else ""
        if text == there:
            continue
        if "--check" in sys.argv:
            print(f"{path}:1: is not what the chart says; `make manifests` makes it anew")
            stale = 1
            continue
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)
        print(f"wrote {path}")
    return stale


if __name__ == "__main__":
    sys.exit(main())
