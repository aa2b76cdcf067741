#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_completion.py VGPU: what bash, zsh and fish offer behind vgpu, and that each command has its man page. A shell that is not
here is skipped."""

import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))
import csource  # noqa: E402 pylint: disable=wrong-import-position
import gen_man  # noqa: E402 pylint: disable=wrong-import-position

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
PLACE = os.path.join(ROOT, "tools/completion")


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=120, **more)


def commands():
    with open(os.path.join(ROOT, "src/cli/commands.def"), encoding="utf-8") as f:
        return re.findall(r"^COMMAND\((\w+)", f.read(), re.M)


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.environment = {**os.environ, "PATH": os.path.dirname(VGPU) + ":" + os.environ["PATH"]}

    def fish(self, line):
        done = run("fish", "--no-config", "-c", f"source {PLACE}/vgpu.fish; complete -C '{line}'", env=self.environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return {words.split("\t")[0] for words in done.stdout.splitlines()}

    def fish_with_words(self, line):
        done = run("fish", "--no-config", "-c", f"source {PLACE}/vgpu.fish; complete -C '{line}'", env=self.environment)
        return dict((words.split("\t") + [""])[:2] for words in done.stdout.splitlines())

    def bash(self, *words):
        script = f"""source {PLACE}/vgpu.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _vgpu; printf '%s\\n' "${{COMPREPLY[@]}}" """
        done = run("bash", "--norc", "-c", script, "bash", *words, env=self.environment)
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def zsh(self, line):
        """By a terminal of its own, in which Tab is pressed."""
        script = f"""
            zmodload zsh/zpty
            zpty work zsh -f -i
            say() {{ zpty -w work "$1"; }}
            say 'PROMPT=; fpath=({PLACE} $fpath); autoload -Uz compinit; compinit -u -D; zstyle ":completion:*" list-prompt ""; LISTMAX=0; setopt auto_list no_beep; stty columns 200'
            say 'print READY''; bindkey "^I" complete-word'
            zpty -r work text '*READY*'
            zpty -w -n work '{line}'$'\\t'
            sleep 1.5
            while zpty -r -t work text; do print -r -- $text; done
            zpty -d work"""
        return run("zsh", "-f", "-c", script, env=self.environment).stdout

    @unittest.skipUnless(shutil.which("fish"), "no fish here")
    def test_fish(self):
        self.assertLessEqual(set(commands()), self.fish("vgpu "))
        self.assertLessEqual({"--memory", "--cores", "--mps"}, self.fish("vgpu run --"))
        self.assertIn("512m", self.fish("vgpu run --memory "))
        self.assertEqual({"--evict", "--sim"}, {w for w in self.fish("vgpu suspend --") if w not in ("--help", "--version")})

    def test_bash(self):
        self.assertLessEqual(set(commands()), self.bash("vgpu", ""))
        self.assertLessEqual({"--memory", "--cores", "--mps"}, self.bash("vgpu", "run", "--"))
        self.assertIn("512m", self.bash("vgpu", "run", "--memory", ""))

    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_zsh(self):
        self.assertEqual(run("zsh", "-n", os.path.join(PLACE, "_vgpu")).stderr, "")
        offered = self.zsh("vgpu ")
        for name in commands():
            self.assertIn(name, offered)
        offered = self.zsh("vgpu suspend --")
        for words in ("--evict", "move what its processes hold"):
            self.assertIn(words, offered)

    def test_descriptions_are_words_and_the_shells_show_them(self):
        rows = csource.rows(csource.read(ROOT, gen_man.COMMANDS), "COMMAND")
        details = gen_man.help_texts(ROOT)
        self.assertEqual({row.args[0] for row in rows}, set(commands()))
        for row in rows:
            command = row.args[0]
            options = {"--" + name: words for name, _, words in gen_man.options_of(row, details.get(command, ""))}
            for option, words in options.items():
                # what was cut in the midst of brackets, quotes or a name is no sentence
                self.assertRegex(words, r"^[a-z][\w'%,.-]*( [\w'%`=/.-]+)+$", f"{command} {option}")
                self.assertEqual(words.count("`") % 2, 0, f"{command} {option}")
                self.assertEqual(re.findall(r"(?<!\w)'|'(?!\w)", words), [], f"{command} {option}")
            if shutil.which("fish"):
                offered = self.fish_with_words(f"vgpu {command} --")
                self.assertEqual({**offered, **options}, offered, command)
            if command != "run":
                self.assertLessEqual(set(options), self.bash("vgpu", command, "--"))
                self.assertLessEqual(self.bash("vgpu", command, "--"), {*options, "--help"}, command)
            if shutil.which("zsh") and len(options) > 1:
                offered = re.sub(r"\s+", " ", self.zsh(f"vgpu {command} --"))
                for option, words in options.items():
                    self.assertIn(f"{option} -- {words[:60]}", offered, command)

    def test_what_is_no_clause_is_not_offered(self):
        for text, words in (("device-config.yaml of it; else", "device-config.yaml of it"), ("one more: a=b,c=d", "one more"), ("each (or not)", "each"),
                            ("like 2.5g, or so", "like 2.5g")):
            self.assertEqual(gen_man.clause(text), words)
        self.assertEqual(gen_man.in_quotes("a'b\\c"), "'a\\'b\\\\c'")

    def test_each_command_has_a_page(self):
        for name in commands():
            with open(os.path.join(ROOT, f"docs/man/vgpu-{name}.1"), encoding="utf-8") as f:
                text = f.read()
            for option in set(re.findall(r"--[a-z][a-z-]*", run(VGPU, "help", name).stdout)):
                self.assertIn(option.replace("-", "\\-"), text, name)

    @unittest.skipUnless(shutil.which("man"), "no man here")
    def test_pages_are_read_without_warning(self):
        for name in sorted(os.listdir(os.path.join(ROOT, "docs/man"))):
            done = run("man", "--warnings", "-l", os.path.join(ROOT, "docs/man", name), env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"})
            self.assertEqual([w for w in done.stderr.splitlines() if "adjust" not in w and "break" not in w], [], name)


if __name__ == "__main__":
    VGPU = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1])
