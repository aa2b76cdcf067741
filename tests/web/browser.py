# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, by its DevTools protocol over two pipes."""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import time


def find():
    """Its path, or None."""
    for name in (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"):
        if name and shutil.which(name):
            return shutil.which(name)
    return None


class Browser:
    """One tab."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(prefix="vgpu-chromium-", ignore_cleanup_errors=True)
        its_input, self.output = os.pipe()
        self.input, its_output = os.pipe()

        def place():
            first, second = os.dup(its_input), os.dup(its_output)
            os.dup2(first, 3)
            os.dup2(second, 4)
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             f"--user-data-dir={self.profile.name}", "about:blank"],
            pass_fds=(3, 4) if {its_input, its_output} == {3, 4} else (its_input, its_output, 3, 4), preexec_fn=place,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(its_input)
        os.close(its_output)
        self.number, self.rest, self.session, self.events = 0, b"", None, []
        target = [one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page"][0]
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def read(self):
        while b"\0" not in self.rest:
            more = os.read(self.input, 1 << 16)
            assert more, "the browser has ended"
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def look(self, width=1280, height=800, is_dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}])

    def open(self, url, ready):
        # the page before, whose program may have ended, asks for nothing any more and has no complaints
        self.call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait(ready)

    def run(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, script, seconds=60):
        until = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < until, f"{script} within {seconds} s; {self.complaints()}"
            time.sleep(0.1)

    def key(self, key, code=None, number=0):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key, windowsVirtualKeyCode=number,
                      **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {"text": key} if len(key) == 1 and kind == "keyDown" else {}))

    def picture(self, path, is_whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=is_whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def complaints(self):
        """What the console has: errors, and what the policy of the page has refused."""
        return [event for event in self.events if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded") or
                (event.get("method") == "Runtime.consoleAPICalled" and event["params"]["type"] == "error")]

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]

    def check(self):
        """What holds of each page: nothing is wider than the screen, the console is silent, and no other host is asked."""
        assert self.run("document.documentElement.scrollWidth <= innerWidth"), "it is wider than the screen"
        assert not self.complaints(), self.complaints()
        others = [url for url in self.requests() if not re.match(r"http://127\.0\.0\.1:\d+/", url)]
        assert not others, others

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.input)
        os.close(self.output)
        self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
