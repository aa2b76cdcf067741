#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page.py MONITOR MAKE-SLICES NVML VGPU-SIM [TEST...]: the page in Chromium. PICTURES=FOLDER keeps pictures of it."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

from browser import Browser, find
from stage import Node, many_slices, some_slices, wait_for

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from cases import SKIPPED, collect, equal, run  # noqa: E402 pylint: disable=wrong-import-position

BINARIES, SIM = sys.argv[1:4], sys.argv[4]
SIZES = ((1280, 800), (390, 844))
# An hour is too long for a test: what history.json would say then.
HOUR = """(() => { const real = window.fetch; window.fetch = async (path, options) => {
    const answer = await real(path, options);
    if (path !== "history.json") return answer;
    const history = await answer.json();
    const wave = (id, i, most) => Math.round(most * Math.max(0, Math.min(1, .5 + .3 * Math.sin(i / (5 + id) + id) + .15 * Math.sin(i * id))));
    for (const line of history.series) {
        line.memory_mib = Array.from({length: 120}, (_, i) => wave(line.id, Math.floor(i / 9), 6000));
        line.busy_permille = Array.from({length: 120}, (_, i) => i % 50 === 20 ? null : wave(line.id, i, 600)); }
    return new Response(JSON.stringify(history)); }; })()"""


def open_page(browser, node, gpus, slices):
    browser.open(f"http://127.0.0.1:{node.port}/", "document.getElementById('live')?.textContent === 'live' && "
                 f"document.querySelectorAll('.gpu').length === {gpus} && document.querySelectorAll('tbody tr').length === {slices}")


def pictures(browser, node, name, gpus, slices):
    for width, height in SIZES:
        for is_dark in (False, True):
            browser.look(width, height, is_dark)
            open_page(browser, node, gpus, slices)
            time.sleep(0.3)
            browser.check()
            if "PICTURES" in os.environ:
                browser.picture(f"{os.environ['PICTURES']}/{name}-{width}-{'dark' if is_dark else 'light'}.png", gpus <= 2)


def a_day_of_work(browser):
    with Node(BINARIES) as node:
        node.add(some_slices([gpu["uuid"] for gpu in node.gpus()]))
        time.sleep(1)
        node.state()
        node.say("refuse 1")
        wait_for(lambda: node.state()["refusals"], "the refusal")
        pictures(browser, node, "day", 2, 5)
        for part in ("train-llm-0", "59.6 GiB", "of 70 GiB", "waits for its turn", "waits at its limit", "suspended", "memory beyond its quota",
                     "waits for a slice of higher priority"):
            browser.wait(f"document.querySelector('main').innerText.includes({part!r})")
        equal(browser.run("[...document.querySelectorAll('.spark')].filter(e => e.getAttribute('aria-label')).length >= 8"), True)


def many_slices_with_long_names(browser):
    with Node(BINARIES, "h200x8") as node:
        node.add(many_slices(node.gpus()))
        wait_for(lambda: sum(len(gpu["slices"]) for gpu in node.gpus()) == 64, "slices")
        time.sleep(1)
        pictures(browser, node, "many", 8, 64)
        took = browser.run("(() => { const began = performance.now(); for (let i = 0; i < 10; i++) show(); "
                           "return (performance.now() - began) / 10; })()")
        print(f"      64 slices are shown anew in {took:.1f} ms")


def no_gpu(browser):
    with Node([BINARIES[0], BINARIES[1], "/nowhere.so"]) as node:
        pictures(browser, node, "none", 0, 0)
        equal(browser.run("document.getElementById('none').textContent"), "This node has no GPU that its driver lists.")


def a_gpu_that_is_ill(browser):
    with Node(BINARIES) as node:
        node.add(some_slices([gpu["uuid"] for gpu in node.gpus()]))
        subprocess.run([SIM, "card", "lose", "--device", "1"], env=node.environment, check=True, stdout=subprocess.DEVNULL)
        wait_for(lambda: not all(gpu["is_healthy"] for gpu in node.gpus()), "the card's end")
        wait_for(lambda: sum(len(gpu["slices"]) for gpu in node.gpus()) == 5, "slices")
        pictures(browser, node, "ill", 2, 5)
        equal(browser.run("document.querySelectorAll('.gpu.is-ill').length"), 1)
        equal("the driver does not answer for it" in browser.run("document.querySelector('.is-ill').innerText"), True)


def names_are_text(browser):
    """Containers named by whoever means harm: nothing of it becomes an element, runs, or asks for anything."""
    names = ['<img src=x onerror="window.harm=1">', "<script>window.harm=1<", "\"'><b onclick=alert(1)>", "javascript:alert(1)", "‮evil‭", "{{7*7}}${harm=1}"]
    with Node(BINARIES) as node:
        uuids = [gpu["uuid"] for gpu in node.gpus()]
        node.add([{"pod": f"p{i}", "uuid": uuids[0], "used": 10, "quota": 100} for i in range(len(names))])
        time.sleep(0.5)
        for i, name in enumerate(names):
            os.rename(node.hook / f"containers/p{i}_main", node.hook / f"containers/p{i}_{name}")
        wait_for(lambda: len(node.gpus()[0]["slices"]) == len(names), "slices")
        browser.look()
        open_page(browser, node, 2, len(names))
        time.sleep(2.5)
        browser.check()
        equal(browser.run("[window.harm === undefined, document.querySelectorAll('main img, main script, main b[onclick]').length]"), [True, 0])
        told = browser.run("[...document.querySelectorAll('tbody .of')].map(e => e.textContent)")
        equal(sorted(told), sorted(names))
        equal(browser.run("[...document.querySelectorAll('tbody .of')].every(e => getComputedStyle(e).unicodeBidi === 'isolate')"), True)
        # and a script that came in all the same would not run
        browser.run("(() => { const s = document.createElement('script'); s.textContent = 'window.harm = 2'; document.body.append(s); "
                    "const d = document.createElement('div'); d.setAttribute('onclick', 'window.harm = 3'); document.body.append(d); d.click(); })()")
        equal(browser.run("window.harm === undefined"), True)


def it_is_used_with_a_keyboard(browser):
    with Node(BINARIES) as node:
        node.add(some_slices([gpu["uuid"] for gpu in node.gpus()]))
        wait_for(lambda: sum(len(gpu["slices"]) for gpu in node.gpus()) == 5, "slices")
        browser.look()
        open_page(browser, node, 2, 5)
        order = []
        for _ in range(4):
            browser.key("Tab", number=9)
            order.append(browser.run("document.activeElement.id || document.activeElement.textContent"))
            equal(browser.run("getComputedStyle(document.activeElement).outlineStyle"), "solid")
        equal(order, ["Skip to the GPUs", "pause", "find", "JSON"])
        browser.run("document.getElementById('pause').focus()")
        browser.key("Enter", number=13)
        equal(browser.run("[document.getElementById('pause').getAttribute('aria-pressed'), document.getElementById('live').textContent]"),
              ["true", "paused"])
        browser.key("Enter", number=13)
        browser.run("document.getElementById('find').focus()")
        for letter in "note":
            browser.key(letter)
        equal(browser.run("[...document.querySelectorAll('tbody .name')].map(e => e.textContent)"), ["notebook-ada"])
        # what is typed and where stays over polls
        time.sleep(2.5)
        equal(browser.run("[document.activeElement.id, document.activeElement.value]"), ["find", "note"])


def an_end_of_the_program_is_seen(browser):
    with Node(BINARIES) as node:
        browser.look()
        open_page(browser, node, 2, 0)
        node.process.kill()
        browser.wait("document.getElementById('live').textContent.startsWith('no answer since')")
        equal(browser.run("document.querySelectorAll('.gpu').length"), 2)
        node.process.wait()
        node.process.returncode = 0


def main():
    program = find()
    if not program:
        print("no Chromium here: apt-get install chromium")
        return SKIPPED
    with Browser(program) as browser:
        browser.call("Page.addScriptToEvaluateOnNewDocument", source=HOUR)
        return run(collect(globals(), "browser"), sys.argv[5:], lambda: contextlib.nullcontext(browser))


if __name__ == "__main__":
    sys.exit(main())
