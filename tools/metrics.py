#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The metrics that programs tell, by their tables in the source. metrics.py PROGRAM [--legacy-metrics] <SCRAPE: what a scrape
has otherwise than the tables of PROGRAM, which is vgpu, vgpu-monitor or vgpu-scheduler."""

import json
import os
import re
import sys

import csource

SLICES = ("Slices", "src/node/slice_metrics.def", ("vgpu", "vgpu-monitor"))
# title, table, and whose metrics these are
TABLES = [SLICES, ("What is left out", "src/cli/left_out.def", ("vgpu",)), ("Audit", "src/monitor/audit.def", ("vgpu-monitor",)),
          ("The kubelet's record", "src/monitor/books.def", ("vgpu-monitor",)),
          ("Containers and devices of a node", "src/monitor/metrics.def", ("vgpu-monitor",)),
          ("Scheduler", "src/scheduler/metrics.def", ("vgpu-scheduler",))]
USERS = ("deploy/alerts.yaml", "deploy/prometheus-rule.yaml", "deploy/grafana-dashboard.json")
# of a scrape, or of a rule of ours
GIVEN = {"instance", "job", "alertname", "alertstate", "le"}
SAMPLE = re.compile(r'([A-Za-z_:]\w*)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\})? \S+')


class Metric:
    """A row: name, kind (gauge, counter, histogram), unit, labels (name to whether it may be missing), words, is_old, old (names before it)."""

    def __init__(self, row, sets):
        _, self.kind, self.unit, self.name, labels, self.words = row.args
        labels = re.sub(r"\b[A-Z_]+\b", lambda m: sets[m.group(0)], labels)
        self.labels = {label.rstrip("?"): label.endswith("?") for label in labels.split()}
        self.is_old, self.old = row.macro == "LEGACY", []


def read_table(root, path):
    found, sets = [], {}
    if not os.path.isfile(os.path.join(root, path)):
        return found
    for row in csource.rows(csource.read(root, path), "LABELS", "METRIC", "LEGACY"):
        if row.macro == "LABELS":
            sets[row.args[0]] = row.args[1]
            continue
        found.append(Metric(row, sets))
        if row.macro == "LEGACY":
            [one for one in found if not one.is_old][-1].old.append(found[-1])
    return found


def read(root, program=None):
    """Name to metric, of a program or of all."""
    return {metric.name: metric for _, path, programs in TABLES if program is None or program in programs
            for metric in read_table(root, path)}


def wrong_in_scrape(root, program, text, has_old=True):
    """What a scrape has that the tables have otherwise, as sentences. Every family of the tables is in a scrape, if without samples."""
    known = {name: one for name, one in read(root, program).items() if has_old or not one.is_old}
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    words = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.M))
    found = [f"{name} is in no table" for name in kinds if name not in known]
    found += [f"{name} is not told" for name in known if name not in kinds]
    found += [f"{name} is told as {kinds[name]}: {words.get(name)}" for name, one in known.items()
              if name in kinds and (kinds[name], words.get(name)) != (one.kind, one.words)]
    for line in text.splitlines():
        sample = SAMPLE.fullmatch(line)
        if not sample:
            found += [] if line.startswith("#") else [f"no sample: {line}"]
            continue
        name = sample[1] if sample[1] in known else re.sub(r"_(bucket|sum|count)$", "", sample[1])
        one, labels = known.get(name), re.findall(r'(\w+)="', re.sub(r'="(?:[^"\\]|\\.)*"', '="', sample[2] or ""))
        if not one:
            found.append(f"{sample[1]} is in no table")
            continue
        found += [f"{name} has the label {label}" for label in labels if label not in one.labels and label not in GIVEN]
        found += [f"{name} lacks the label {label}" for label, may_lack in one.labels.items() if label not in labels and not may_lack]
    return sorted(set(found))


def expressions(text):
    """Of rules or a dashboard: each expression, with the labels of its legend."""
    if text.lstrip().startswith("{"):
        dashboard = json.loads(text)
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                yield target["expr"], re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", ""))
        for variable in dashboard["templating"]["list"]:
            for metric, label in re.findall(r"label_values\((\w+), (\w+)\)", variable.get("definition", "")):
                yield f"count by ({label}) ({metric})", []
        return
    for expr in re.findall(r'^ +expr: (".*")$', text, re.M):
        yield json.loads(expr), []


def names_and_labels(expr):
    """The metrics of an expression, and the labels by which it selects or joins them."""
    bare = re.sub(r'"[^"]*"', '""', expr)
    labels = {part for group in re.findall(r"\{([^}]*)\}", bare) for part in re.findall(r"(\w+)\s*[=!]", group)}
    labels |= {part for group in re.findall(r"\b(?:by|on|without|ignoring) \(([^)]*)\)", bare) for part in re.findall(r"\w+", group)}
    return set(re.findall(r"\b(?:vgpu|hami)_\w+", bare)), labels


def wrong_in_users(root):
    """(path, line, words): metrics and labels of rules and dashboard that no program tells."""
    known = read(root)
    for path in USERS if known else []:
        text = csource.read(root, path) if os.path.isfile(os.path.join(root, path)) else ""
        for expr, shown in expressions(text) if text else []:
            line = csource.line_of(text, max(text.find(json.dumps(expr)[1:-1]), 0))
            names, labels = names_and_labels(expr)
            bases = [known.get(name) or known.get(re.sub(r"_(bucket|sum|count)$", "", name)) for name in names]
            for name, base in zip(names, bases):
                if not base:
                    yield path, line, f"the metric {name}"
            for label in sorted((labels | set(shown)) - GIVEN):
                if not any(base and label in base.labels for base in bases):
                    yield path, line, f"the label {label} of {', '.join(sorted(names))}"


def wrong_in_text(root):
    """(path, line, words): metrics that pages name and no program tells. A name may end in * or in …"""
    known = read(root)
    for path in csource.files(root, ".md") if known else []:
        text = csource.read(root, path)
        for match in re.finditer(r"`((?:hami|vgpu)_(?:slice|container|scheduler|audit|host|gpu|node|mig|resource|vgpu|build)_\w*)(\*?)`", text):
            name, is_open = match.groups()
            if not any(one.startswith(name) if is_open else one == name for one in known):
                yield path, csource.line_of(text, match.start()), f"the metric {name}"


def declared_elsewhere(root):
    """(path, line, words): names of metrics in C that stand in no table."""
    for path in csource.files(root, ".c"):
        if path.startswith("src/"):
            text = csource.without_comments(csource.read(root, path), keep_strings=True)
            for match in re.finditer(r'"((?:vgpu|hami)_\w+_(?:total|bytes|seconds|ratio|info|count))[ {"]', text):
                yield path, csource.line_of(text, match.start()), f"the metric {match[1]}, which belongs into a table"


def main():
    text = sys.stdin.read()
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    found = wrong_in_scrape(root, sys.argv[1], text, has_old="--legacy-metrics" in sys.argv)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
