# SPDX-License-Identifier: Apache-2.0
"""The cases of a script of tests: functions whose names say what holds."""

import contextlib
import inspect
import time
import traceback

SKIPPED = 77  # what a whole script ends with that could run none


class Skipped(Exception):
    """What this machine lacks for a case, or the rest of it."""


def equal(is_, should_be):
    if is_ != should_be:
        raise AssertionError(f"is        {is_}\nshould be {should_be}")


def contains(text, part):
    if part not in text:
        raise AssertionError(f"no {part!r} in {text!r}")


def collect(names, *parameters):
    """Of a script's globals(), its own functions with one parameter, called as one of these; without any, those that take nothing."""
    takes = [[parameter] for parameter in parameters] or [[]]
    return [value for value in names.values() if inspect.isfunction(value) and value.__module__ == names["__name__"]
            and list(inspect.signature(value).parameters) in takes]


def run(cases, wanted=(), given=None):
    """Runs the cases, or those of them that are wanted by name, each within what `given()` makes for it. Returns what a script ends with."""
    chosen = [case for case in cases if not wanted or case.__name__ in wanted]
    skipped = failed = 0
    for case in chosen:
        began = time.monotonic()
        try:
            with given() if given else contextlib.nullcontext() as it:
                case(*([it] if given else []))
            print(f"ok    {case.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        except Skipped as reason:
            skipped += 1
            print(f"skip  {case.__name__}: {reason}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"FAILED {case.__name__}\n{traceback.format_exc()}", flush=True)
    print(f"{len(chosen)} cases, {skipped} skipped, {failed} failed", flush=True)
    return failed != 0
