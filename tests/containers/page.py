# SPDX-License-Identifier: Apache-2.0
"""docs/containers.md as a test reads it: its sections, and what a line of `docker run`, `podman run`, `nerdctl run` or a compose file asks for."""

import os
import re
import shlex

try:
    import yaml
except ImportError:
    yaml = None

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/containers.md")
# What the page calls the image and the program in it, and the machine's GPUs in podman's words.
IMAGE, PROGRAM, GPUS = "IMAGE", ["python3", "train.py"], "nvidia.com/gpu=all"
RUN = re.compile(r"(docker|podman|nerdctl) run ")


class Section:
    """Its title, the commands that come before, and what starts a container: lines, and the text of compose files."""

    def __init__(self, text):
        self.title, self.preparations, self.lines = text.split("\n")[0], [], []
        for not_run, language, block in re.findall(r"(^<!-- not run: [^\n]*-->\n)?^```(\w+)\n(.*?)^```$", text, re.S | re.M):
            if not_run:
                continue
            if language == "yaml":
                self.lines.append(block)
                continue
            prompted = re.findall(r"^[$#] (.*)$", block, re.M) if language == "console" else [block]
            for command in prompted:
                (self.lines if RUN.match(command) else self.preparations).append(command)


def sections():
    with open(PAGE, encoding="utf-8") as file:
        found = [Section(text) for text in file.read().split("\n## ")[1:]]
    return [section for section in found if section.lines]


def runtime_of(line):
    match = RUN.match(line)
    return match[1] if match else "compose"


def words_of(line):
    return shlex.split(line.replace("\\\n", " "))


def nothing_asked():
    return {"volumes": [], "env": [], "tmpfs": [], "devices": [], "read_only": False, "user": 0}


def read_line(line):
    """The options that matter here; others are an error, so that none is left out in silence."""
    words = words_of(line)
    program, rest, asked = words[0], words[2:], nothing_asked()
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "--read-only":
            asked["read_only"] = True
        elif option == "--user":
            asked["user"] = int(rest.pop(0))
        elif option == "--gpus" and program != "podman":
            rest.pop(0)
        elif option in ("-v", "-e", "--tmpfs", "--device"):
            value = rest.pop(0)
            if (option, value) != ("--device", GPUS):
                asked[{"-v": "volumes", "-e": "env", "--tmpfs": "tmpfs", "--device": "devices"}[option]].append(value)
        else:
            raise AssertionError(f"the test does not know {option} of {program}")
    if rest not in ([IMAGE], [IMAGE, *PROGRAM]):
        raise AssertionError(f"not an image and its program: {rest}")
    return asked


def read_yaml(text):
    """As much of YAML as the page has: maps by their indentation, and lists of words. What is in brackets stays a word."""
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in text.splitlines()]

    def read_from(indent):
        if lines[0][1].startswith("- "):
            found = []
            while lines and lines[0][0] == indent:
                found.append(lines.pop(0)[1][2:])
            return found
        found = {}
        while lines and lines[0][0] == indent:
            key, value = lines.pop(0)[1].split(":", 1)
            found[key] = value.strip() or read_from(lines[0][0])
        return found

    return read_from(0)


def read_service(text):
    """A compose file's one service, without the GPUs that it has to ask for."""
    (service,) = read_yaml(text)["services"].values()
    gpus = service.pop("deploy")["resources"]["reservations"]["devices"]
    if gpus != "[{driver: nvidia, count: all, capabilities: [gpu]}]":
        raise AssertionError(f"not all GPUs: {gpus}")
    if yaml:
        (whole,) = yaml.safe_load(text)["services"].values()
        del whole["deploy"]
        if whole != service:
            raise AssertionError(f"by YAML it is {whole}, and not {service}")
    return service


def read_compose(text):
    service, asked = read_service(text), nothing_asked()
    if (service.pop("image"), service.pop("command").split()) != (IMAGE, PROGRAM):
        raise AssertionError(f"not an image and its program: {text}")
    asked["volumes"] = service.pop("volumes")
    if service:
        raise AssertionError(f"the test does not know {service} of a compose file")
    return asked


def read(line):
    return read_compose(line) if runtime_of(line) == "compose" else read_line(line)
