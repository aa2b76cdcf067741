# SPDX-License-Identifier: Apache-2.0
"""Commands in the pages for users. Each block says its language: sh, console (a prompt before each command, and what is printed),
yaml, or text. A block of commands is run by tests/delivery/run_docs.py, or a comment before it says who runs it, or why nobody does:

    <!-- run by FILE -->      FILE has each of its commands
    <!-- not run: REASON -->  only what can be known without running is checked, as of commands between backquotes"""

import os
import re
import shlex
import subprocess

import csource

PAGES = ("README.md", "docs/containers.md", "docs/kubernetes.md", "docs/migrating-from-hami.md", "docs/troubleshooting.md", "docs/faq.md",
         "docs/monitor.md", "docs/web.md", "docs/machine.md", "docs/plugin.md", "docs/scheduler.md")
FENCE = re.compile(r"(?:^<!-- (run by|not run:) (.*?) ?-->\n)?^```(\w*)\n(.*?)^```$", re.M | re.S)
DAEMONS = {"vgpu-scheduler": "src/scheduler/flags.def", "vgpu-device-plugin": "src/plugin/config/flags.def", "vgpu-monitor": "src/monitor/main.c"}
# of programs that are not ours: the words that may come first
VERBS = {"kubectl": "apply get describe logs exec label annotate cordon uncordon delete wait port-forward rollout", "helm": "install upgrade uninstall template",
         "docker": "run exec compose", "podman": "run", "nerdctl": "run compose", "ctr": "-n", "systemctl": "enable", "apt-get": "install", "nvidia-smi": ""}
OPTIONS = {"docker": "--gpus --device --read-only --tmpfs -v -e", "podman": "--device -v", "nerdctl": "--gpus -v", "helm": "-n -f --set",
           "kubectl": "-f -n -o -A --overwrite --timeout --for", "systemctl": "--now"}
KINDS = {"pod", "pods", "node", "nodes", "nodes,pods,resourcequotas", "configmap", "events"}
OTHERS = set("echo cat mkdir install sed cp mv chmod python3 LD_PRELOAD ./a.out".split())
NAME = re.compile(r"\b(?:cantaloupe\.io|hami\.io|nvidia\.com)/[a-z][\w.-]*[a-z]")


class Block:
    """language, text, who runs it ("", "run by", "not run:") and the rest of that comment, path, line of the first command."""

    def __init__(self, path, text, match):
        self.path, self.line = path, csource.line_of(text, match.start(4))
        self.how, self.why, self.language, self.text = match[1] or "", match[2] or "", match[3], match[4]

    def commands(self):
        """(command, what the page says it prints, or None)."""
        if self.language == "sh":
            return [(self.text, None)]
        found = []
        for prompt, command, printed in re.findall(r"^([$#]) (.*(?:\\\n.*)*)\n((?:(?![$#] ).*\n)*)", self.text, re.M):
            found.append((command, printed or None))
        return found


def blocks(root, path):
    text = csource.read(root, path)
    return [Block(path, text, match) for match in FENCE.finditer(text)]


def lines_of(script):
    """Single commands of a script, without comments, here-documents and what is behind a pipe."""
    script = re.sub(r"<<(\w+)\n.*?^\1$", "", script, flags=re.M | re.S).replace("\\\n", " ")
    for line in script.split("\n"):
        for part in re.split(r"\s&&\s|\s\|\s|\s&$", re.sub(r"(^|\s)#\s.*", "", line)):
            words = shlex.split(part.strip())
            while words and (words[0] == "sudo" or re.match(r"[A-Z_]+=", words[0])):
                words.pop(0)
            if words:
                yield words


class Checker:
    """What is known of commands without running them."""

    def __init__(self, root):
        self.root = root
        self.targets = set(re.findall(r"^([a-z][\w-]*):", csource.read(root, "Makefile"), re.M))
        self.made = csource.read(root, "Makefile") + csource.read(root, "tools/image.py")
        self.sim = {row.args[0] for row in csource.rows(csource.read(root, "sim/tool/command.def"), "COMMAND")}
        self.flags = {program: set(re.findall(r"[\"-]((?:[a-z]+[-_])*[a-z]+)[\" =\\[]", csource.read(root, path)))
                      for program, path in DAEMONS.items()}
        self.names = set()
        for path in csource.files(root, ".c", ".h", ".def", ".yaml"):
            if path.startswith(("src/", "deploy/", "examples/")):
                self.names |= set(NAME.findall(csource.read(root, path)))

    def wrong(self, words):
        """What is wrong with a command, as sentences."""
        program, rest = words[0], words[1:]
        for word in words:
            # a file that is there, or that a target makes
            if re.match(r"(?:deploy|tests|tools|examples|docs|src|build)/", word) and not os.path.exists(os.path.join(self.root, word)) and (
                    word not in self.made):
                yield f"{word} is not there"
        if program == "make":
            yield from (f"make {word}: no such target" for word in rest if not re.match(r"[A-Z_]+=", word) and word not in self.targets)
        elif program == "vgpu-sim":
            yield from (f"vgpu-sim {word}: no such command" for word in rest[:1] if word not in self.sim)
        elif program in DAEMONS:
            for word in rest:
                if word.startswith("--") and word[2:].split("=")[0] not in self.flags[program]:
                    yield f"{program} has no {word}"
        elif program in VERBS:
            if rest and rest[0] not in VERBS[program].split() and VERBS[program]:
                yield f"{program} {rest[0]} is not known here"
            stop = next((i for i, word in enumerate(rest) if word == "--" or word == "IMAGE"), len(rest))
            yield from (f"{program} {word} is not known here" for word in rest[:stop] if word.startswith("-") and program in OPTIONS
                        and word.split("=")[0] not in OPTIONS[program].split() + VERBS[program].split())
            if program == "kubectl" and rest and rest[0] in ("get", "describe", "label", "annotate", "delete") and rest[1:]:
                yield from (f"kind {word} is not known here" for word in rest[1:2] if not word.startswith("-") and word.split("/")[0] not in KINDS)
        elif program == "tests/cluster/playground.sh":
            yield from self.wrong(rest) if rest[:1] == ["kubectl"] else ()
        elif program != "vgpu" and program not in OTHERS and not os.path.exists(os.path.join(self.root, program)):
            yield f"the program {program} is not known here"


def has_command(text, words):
    """Whether a test's text has a command: by the words that say what it does."""
    if words[0] == "tests/cluster/playground.sh":
        words = words[1:]
    if words[0] == "make":
        return all(re.search(rf"make\b.*\b{re.escape(word)}\b", text) for word in words[1:] if "=" not in word)
    said = [word for word in words[:3] if not re.match(r"-|IMAGE|NODE", word)][:2]
    return re.search(r"\b.*\b".join(re.escape(word) for word in said), text) is not None


def wrong_block(root, block, checker):
    if block.language not in ("sh", "console", "yaml", "text"):
        yield f"a block in {block.language or 'no language'}; sh, console, yaml or text is right"
        return
    if block.language in ("yaml", "text"):
        return
    for script, _ in block.commands():
        syntax = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
        if syntax.returncode:
            yield "bash does not read it: " + syntax.stderr.strip()
            continue
        for words in lines_of(script):
            yield from checker.wrong(words)
            if block.how == "run by":
                there = os.path.isfile(os.path.join(root, block.why))
                if not there or not has_command(csource.read(root, block.why), words):
                    yield f"{block.why} does not run {' '.join(words[:3])}"
    if block.how == "not run:" and len(block.why.split()) < 3:
        yield "no reason is given why it is not run"


def wrong(root):
    """(path, line, sentence)"""
    there = [path for path in PAGES if os.path.isfile(os.path.join(root, path))]
    if not os.path.isfile(os.path.join(root, "sim/tool/command.def")):
        return
    checker = Checker(root)
    for path in there:
        text = csource.read(root, path)
        for block in blocks(root, path):
            for words in wrong_block(root, block, checker):
                yield path, block.line, words
        for match in re.finditer(r"`((?:sudo )?(?:make|docker|podman|kubectl|helm|ctr|systemctl|apt-get|vgpu-[a-z-]+|tests/\S+\.sh) [^`\n]+)`", FENCE.sub(
                lambda m: re.sub(r"[^\n]", " ", m[0]), text)):
            if "…" not in match[1]:
                for words in lines_of(match[1]):
                    for said in checker.wrong(words):
                        yield path, csource.line_of(text, match.start()), said
        for match in NAME.finditer(text):
            if match[0] not in checker.names and not any(name.startswith(match[0]) for name in checker.names):
                yield path, csource.line_of(text, match.start()), f"no program knows {match[0]}"
