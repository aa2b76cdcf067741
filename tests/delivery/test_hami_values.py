#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_hami_values.py SCHEDULER PLUGIN MONITOR: whether each value of HAMi's chart comes where it should, changes nothing for a reason that is
documented, or is refused. Needs Helm and PyYAML; without them it is skipped."""

import os
import re
import subprocess
import sys
import unittest

import hami_values
from test_chart import CHART, HELM, SKIPPED, Rendered, helm, text_of, yaml

PROGRAMS = {}


def values_of(settings):
    """{"a.b": 1} as {"a": {"b": 1}}."""
    values = {}
    for key, value in settings.items():
        *above, last = key.split(".")
        place = values
        for part in above:
            place = place.setdefault(part, {})
        place[last] = value
    return values


def leaves(value, before=""):
    """The keys of a table of values that are no tables themselves."""
    if not isinstance(value, dict) or not value:
        return {before}
    return {key for name, one in value.items() for key in leaves(one, f"{before}.{name}" if before else name)}


class HamiValues(unittest.TestCase):
    rendered = {}

    def text(self, settings):
        key = repr(sorted(settings.items()))
        if key not in self.rendered:
            done = helm(values_of(settings))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.rendered[key] = done.stdout
        return self.rendered[key]

    def test_values_come_where_they_should(self):
        for key, value, words, beside in hami_values.HONOURED:
            before, after = self.text(beside), self.text({**beside, key: value})
            for part in words.split("\n"):
                with self.subTest(key=key, words=part):
                    less, more = (after, before) if part.startswith("!") else (before, after)
                    self.assertLess(less.count(part.lstrip("!")), more.count(part.lstrip("!")))

    def test_what_changes_nothing_is_documented(self):
        page = text_of("docs/kubernetes.md")
        for key, value in hami_values.IGNORED:
            with self.subTest(key=key):
                self.assertEqual(self.text({key: value}), self.text({}))
                self.assertTrue([name for name in re.findall(r"`([\w.…]+)`", page) if key.startswith(name.rstrip("…"))], "not documented")

    def test_paths_that_must_agree_are_refused_where_they_do_not(self):
        for key, value in hami_values.FOLLOWING:
            with self.subTest(key=key):
                done = helm(values_of({key: value}))
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(key, done.stderr)
                self.assertEqual(self.text({key: value, "global.gpuHookPath": "/opt/gpu"}), self.text({"global.gpuHookPath": "/opt/gpu"}))

    def test_each_value_is_tried(self):
        tried = {row[0] for row in (*hami_values.HONOURED, *hami_values.IGNORED, *hami_values.FOLLOWING)}
        for key in leaves(yaml.safe_load(hami_values.DEFAULTS)):
            self.assertTrue([one for one in tried if key == one or key.startswith(one + ".")], key)

    def test_the_values_tried_are_not_the_defaults(self):
        defaults = yaml.safe_load(text_of(os.path.join(CHART, "values.yaml")))
        for key, value, *_ in (*hami_values.HONOURED, *hami_values.IGNORED, *hami_values.FOLLOWING):
            place = defaults
            for part in key.split("."):
                place = place.get(part) if isinstance(place, dict) else None
            self.assertNotEqual(place, value, key)

    def test_all_defaults_are_taken(self):
        rendered = Rendered(hami_values.DEFAULTS)
        for name, program in PROGRAMS.items():
            command = rendered.container(name)["command"]
            done = subprocess.run([program, *command[1:], "--version"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")


if __name__ == "__main__":
    if not os.access(HELM, os.X_OK):
        print(f"no Helm at {HELM}; tests/cluster/build.sh helm builds it")
        sys.exit(SKIPPED)
    PROGRAMS.update(zip(("vgpu-scheduler", "device-plugin", "vgpu-monitor"), sys.argv[1:4]))
    unittest.main(argv=sys.argv[:1])
