# SPDX-License-Identifier: Apache-2.0
"""Man pages and completions of each command, made of the tables of commands and flags and of the texts of help; by gen_docs.py.
gen_man.py ROOT DAEMON FILE: the page of a daemon, which the build makes."""

import os
import re
import sys

import csource

COMMANDS = "src/cli/commands.def"
TITLE = '.\\" SPDX-License-Identifier: Apache-2.0\n.\\" Made of %s.\n'
DAEMONS = {
    "vgpu-scheduler": ("src/scheduler/flags.def", "kube-scheduler's extender and the webhook for pods with slices", "docs/scheduler.md"),
    "vgpu-device-plugin": ("src/plugin/config/flags.def", "hands the slices of a node's devices out to its pods", "docs/plugin.md"),
    "vgpu-monitor": ("src/monitor/main.c", "tells what the slices of a node use, as metrics", "docs/monitor.md"),
}
# what a value is, by its name in the table
VALUES = {"SIZE": "512m 1g 2g 4g 8g 16g 32g 64g unlimited", "PERCENT": "10 20 25 30 40 50 60 75 80 90 100", "SECONDS": "0.1 0.5 1 2 5 10"}
BY_OPTION = {"priority": "0 1 2 3 4 5 6 7 8 9", "node-policy": "binpack spread", "device-policy": "spread binpack mutex numa topology-aware"}
FILES = {"FILE", "PATH"}
WITH_SLICE = ("set", "suspend", "resume", "doctor")


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)


def version_of(root):
    text = csource.read(root, "meson.build") if os.path.isfile(os.path.join(root, "meson.build")) else ""
    return (re.findall(r"version: '([^']+)'", text) or [""])[0]


def joined(text, macros):
    """C's strings behind each other, of which some are names of macros."""
    parts = re.findall(r'"((?:\\.|[^"\\])*)"|([A-Z_]{4,})', text)
    words = "".join(string if string or not name else joined(macros[name], macros) for string, name in parts)
    return words.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\") if macros is not None else words


def help_texts(root):
    """Command to what `vgpu help COMMAND` says of it."""
    found = {}
    for path in csource.files(root, ".c"):
        if path.startswith("src/cli/"):
            text = csource.read(root, path)
            macros = {name: body.replace("\\\n", "\n") for name, body in
                      re.findall(r"^#define ([A-Z_]{4,})\s((?:.*\\\n)*.*)$", text, re.M) if '"' in body}
            for name, body in re.findall(r"^const char help_(\w+)\[\] =\s*((?:[^;\"]|\"(?:\\.|[^\"\\])*\")*);", text, re.M):
                found[name] = joined(body, macros)
    return found


def entries(text):
    """(option with its value, or None, words): the lines of a text of help. What is deeper goes on."""
    found = []
    for line in text.split("\n"):
        option = re.match(r"  (-\S.*?|\$\S+)(?:  +(.*))?$", line)
        if option:
            found.append([option.group(1), option.group(2) or ""])
        elif re.match(r"    +\S", line) and found and found[-1][0]:
            found[-1][1] += " " + line.strip()
        elif line.startswith("  ") and not option:
            found.append(["", line])
        elif not line:
            found.append([None, ""])
        elif found and found[-1][0] is None and found[-1][1]:
            found[-1][1] += " " + line.strip()
        else:
            found.append([None, line.strip()])
    return found


def body_of(text):
    options, words = "", ""
    for option, said in entries(text):
        if option:
            options += ".TP\n.B %s\n%s\n" % (escaped(option), escaped(said.strip()))
        elif option == "":
            words += ".nf\n%s\n.fi\n" % escaped(said)
        elif said:
            words += ".PP\n%s\n" % escaped(said)
    return (".SH OPTIONS\n" + options if options else "") + (".SH DESCRIPTION\n" + words if words else "")


def page(root, name, section, summary, synopsis, body, also, source):
    text = TITLE % source
    text += '.TH %s %d "" "cantaloupe %s" "Cantaloupe"\n' % (name.upper(), section, version_of(root))
    text += ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n%s" % (escaped(name), escaped(summary), synopsis)
    return text + body + ".SH SEE ALSO\n" + ",\n".join(".BR %s (%d)" % (escaped(n), s) for n, s in also).replace("),\n", ") ,\n") + "\n"


def flag_lines(root, path):
    """The flags of a daemon as its help says them."""
    text = csource.read(root, path)
    if path.endswith(".c"):
        return joined(re.search(r"^static const char help\[\] =\s*((?:[^;\"]|\"(?:\\.|[^\"\\])*\")*);", text, re.M).group(1), {}).split("\n\n", 1)[1]
    lines = ""
    for row in csource.rows(text, "FLAG"):
        if path.startswith("src/plugin/"):
            name, variable, default, meaning = row.args[1], row.args[2], row.args[5], row.args[6]
        else:
            name, variable, default, meaning = row.args[1], "NULL", row.args[3], row.args[4]
        names = ["--" + name] * (name != "NULL") + ["$" + variable] * (variable != "NULL")
        lines += "  %s\n        %s%s\n" % (", ".join(names), meaning, " (%s)" % default if default and default not in meaning else "")
    return lines + "  --help, -h, --version, -V\n        this, or the version\n"


def man_pages(root):
    if not os.path.isfile(os.path.join(root, COMMANDS)):
        return {}
    made, details = {}, help_texts(root)
    for row in csource.rows(csource.read(root, COMMANDS), "COMMAND"):
        name, arguments, summary = row.args[0], row.args[2], row.args[3]
        synopsis = ".B vgpu %s\n%s" % (name, escaped(arguments) + "\n" if arguments else "")
        made["docs/man/vgpu-%s.1" % name] = page(
            root, "vgpu-" + name, 1, summary, synopsis, body_of(details.get(name, "")), [("vgpu", 1)], COMMANDS)
    return made


def daemon_page(root, name):
    path, summary, about = DAEMONS[name]
    body = body_of(flag_lines(root, path)) + ".SH DOCUMENTATION\n%s in the sources.\n" % escaped(about)
    return page(root, name, 8, summary, ".B %s\n[OPTION]...\n" % escaped(name), body, [("vgpu", 1)], path)


def clause(text):
    """The first clause, without what stands in brackets behind it: a point or a colon within a word ends none."""
    return re.split(r"[;:,.](?=\s|$)|\s\(", text.strip())[0].strip()


def in_quotes(text):
    """As a word of fish's."""
    return "'%s'" % text.replace("\\", "\\\\").replace("'", "\\'")


def options_of(row, details):
    """(name, value or "", words) of each option of a command, as the table has them."""
    told = {re.search(r"--([a-z-]+)", option).group(1): words for option, words in entries(details) if option and "--" in option}
    found = {}
    for name, value in re.findall(r"--([a-z][a-z-]*)(?: ([A-Z]+(?:\|\w+)*))?", row.args[2]):
        found.setdefault(name, (name, value, clause(told.get(name, ""))))
    return list(found.values())


def words_for(name, value):
    return BY_OPTION.get(name) or VALUES.get(value.split("|")[0], "")


def fish(rows, details):
    text = "# SPDX-License-Identifier: Apache-2.0\n# Completion of vgpu for fish. Made by tools/gen_docs.py of %s.\n" % COMMANDS
    text += "complete -c vgpu -f\ncomplete -c vgpu -n __fish_use_subcommand -l help -d 'this list'\n"
    text += "complete -c vgpu -n __fish_use_subcommand -l version -d 'the version'\n"
    for row in rows:
        text += "complete -c vgpu -n __fish_use_subcommand -a %s -d %s\n" % (row.args[0], in_quotes(row.args[3]))
    for row in rows:
        here = "complete -c vgpu -n '__fish_seen_subcommand_from %s'" % row.args[0]
        for name, value, words in options_of(row, details.get(row.args[0], "")):
            text += "%s -l %s" % (here, name)
            if value:
                given = words_for(name, value)
                text += " -r" + (" -F" if value in FILES else " -a '%s'" % given if given else "")
            text += " -d %s\n" % in_quotes(words) if words else "\n"
        if row.args[0] in WITH_SLICE:
            text += here + " -a '(vgpu list 2>/dev/null | sed 1d | cut -d \" \" -f 1 | sort -u)'\n"
        if row.args[0] == "run":
            text += here + " -a '(__fish_complete_subcommand)'\n"
        if row.args[0] == "help":
            text += here + " -a '(vgpu help --names)'\n"
    return text


def zsh(rows, details):
    quoted = str.maketrans({"\\": "\\\\", "'": "'\\''", "[": "\\[", "]": "\\]", ":": "\\:"})
    text = "#compdef vgpu\n# SPDX-License-Identifier: Apache-2.0\n# Completion of vgpu for zsh. Made by tools/gen_docs.py of %s.\n" % COMMANDS
    text += "_vgpu_slices() {\n\tlocal -a slices\n\tslices=(${(f)\"$(vgpu list 2>/dev/null | sed 1d | cut -d ' ' -f 1 | sort -u)\"})\n"
    text += "\tcompadd -a slices\n}\n\n_vgpu() {\n\tlocal -a commands\n\tcommands=(\n"
    for row in rows:
        text += "\t\t'%s:%s'\n" % (row.args[0], row.args[3].translate(quoted))
    text += "\t)\n\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tlocal command=$words[2]\n"
    text += "\tshift words\n\t((CURRENT--))\n\tcase $command in\n"
    for row in rows:
        arguments = []
        for name, value, words in options_of(row, details.get(row.args[0], "")):
            repeats = "*" if "--%s %s]..." % (name, value) in row.args[2] else ""
            spec = "%s--%s[%s]" % (repeats, name, (words or name).translate(quoted))
            if value:
                given = words_for(name, value)
                spec += ":%s:%s" % (value, "_files" if value in FILES else "(%s)" % given if given else " ")
            arguments.append("'%s'" % spec)
        if row.args[0] in WITH_SLICE:
            arguments.append("'1:slice:_vgpu_slices'")
        elif row.args[0] == "run":
            arguments += ["'(-)1:program:_command_names -e'", "'*::argument:_normal'"]
        elif row.args[0] == "help":
            arguments.append("'1:command:(%s)'" % " ".join(r.args[0] for r in rows))
        elif row.args[0] == "cdi":
            arguments.append("'*:folder:_files -/'")
        if arguments:
            text += "\t%s)\n\t\t_arguments -S \\\n\t\t\t%s\n\t\t;;\n" % (row.args[0], " \\\n\t\t\t".join(arguments))
    return text + "\tesac\n}\n\n_vgpu \"$@\"\n"


def completions(root):
    if not os.path.isfile(os.path.join(root, COMMANDS)):
        return {}
    rows, details = csource.rows(csource.read(root, COMMANDS), "COMMAND"), help_texts(root)
    return {"tools/completion/vgpu.fish": fish(rows, details), "tools/completion/_vgpu": zsh(rows, details)}


if __name__ == "__main__":
    with open(sys.argv[3], "w", encoding="utf-8") as f:
        f.write(daemon_page(sys.argv[1], sys.argv[2]))
