# SPDX-License-Identifier: Apache-2.0
"""Containers for a test: a line of `docker run`, translated for runc, with the simulated node in the place of a GPU."""

import json
import os
import shlex
import shutil
import subprocess
import tempfile

# What the root has besides what is mounted; what is in /usr is the machine's own, read-only, but for /usr/local.
FOLDERS = ["proc", "dev", "sys", "usr/local", "etc", "run", "root", "tmp", "var/tmp"]
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


class Skipped(Exception):
    pass


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30,
                          check=False, **more)


class Place:
    """A folder that plays the host's root for paths of the documentation, and has the containers' roots."""

    def __init__(self, build):
        if os.geteuid() != 0 or not shutil.which("runc"):
            raise Skipped("it takes root and runc")
        self.build = build
        self.folder = tempfile.mkdtemp(prefix="vgpu-containers-")
        self.sim = tempfile.mkdtemp(prefix="vgpu-containers-", dir="/dev/shm")
        self.count = 0
        library = self.host("/usr/local/lib/vgpu")
        os.makedirs(library)
        shutil.copy(os.path.join(build, "src/tenant/libvgpu.so"), library)
        for name in FOLDERS:
            os.makedirs(os.path.join(self.folder, "lower", name))
        for name, to in LINKS.items():
            if os.path.islink("/" + name):
                os.symlink(to, os.path.join(self.folder, "lower", name))
        # Links that programs of /usr lead through.
        if os.path.isdir("/etc/alternatives"):
            shutil.copytree("/etc/alternatives", os.path.join(self.folder, "lower/etc/alternatives"), symlinks=True)
        for name in ("ld.so.cache", "passwd", "group"):
            if os.path.exists("/etc/" + name):
                shutil.copy("/etc/" + name, os.path.join(self.folder, "lower/etc", name))

    def host(self, path):
        return self.folder + "/host" + path

    def prepare(self, text):
        """Runs a shell text of the documentation."""
        for root in ("/srv/", "/run/"):
            os.makedirs(self.host(root), exist_ok=True)
            text = text.replace(root, self.host(root))
        done = run(["sh", "-ec", text], env={**os.environ, "PATH": f"{self.build}/src/cli:" + os.environ["PATH"]})
        if done.returncode:
            raise AssertionError(text + done.stdout)

    def remove(self):
        for i in range(self.count):
            subprocess.run(["umount", "-l", f"{self.folder}/{i}/rootfs"], check=False,
                           stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder)
        shutil.rmtree(self.sim)


def read_line(line):
    """The options of `docker run` that matter here; others are an error, so that none is left out in silence."""
    words = shlex.split(line.replace("\\\n", " "))
    if words[:2] != ["docker", "run"]:
        raise AssertionError(line)
    found = {"volumes": [], "env": [], "tmpfs": [], "read_only": False, "user": 0}
    rest = words[2:]
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "--read-only":
            found["read_only"] = True
        elif option == "--user":
            found["user"] = int(rest.pop(0))
        elif option in ("-v", "-e", "--tmpfs", "--gpus"):
            key = {"-v": "volumes", "-e": "env", "--tmpfs": "tmpfs"}.get(option)
            value = rest.pop(0)
            if key:
                found[key].append(value)
        else:
            raise AssertionError(f"the test does not know {option}")
    return found


def mount_of(to, kind, source, *options):
    return {"destination": to, "type": kind, "source": source, "options": list(options)}


class Container:
    """One that runs a shell script, in the root that Docker would give it: an overlay."""

    def __init__(self, place, line, script, mounts=()):
        """mounts: more of them, in the form of a specification of the Container Device Interface."""
        options = read_line(line)
        bundle = f"{place.folder}/{place.count}"
        place.count += 1
        self.name = f"{os.path.basename(place.folder)}-{place.count}"
        for part in ("upper", "work", "rootfs"):
            os.makedirs(f"{bundle}/{part}")
        done = run(["mount", "-t", "overlay", "overlay", "-o",
                    f"lowerdir={place.folder}/lower,upperdir={bundle}/upper,workdir={bundle}/work",
                    f"{bundle}/rootfs"])
        if done.returncode:
            raise Skipped("no overlay can be mounted: " + done.stdout.strip())
        run(["runc", "spec", "--bundle", bundle])
        with open(f"{bundle}/config.json", encoding="utf-8") as file:
            spec = json.load(file)
        spec["root"]["readonly"] = options["read_only"]
        spec["process"].update({
            "terminal": False,
            "user": {"uid": options["user"], "gid": options["user"]},
            "args": ["/bin/sh", "-c", script],
            "env": [f"PATH={place.build}/src/cli:{place.build}/sim/tool:{place.build}/examples:/usr/bin:/bin",
                    f"LD_LIBRARY_PATH={place.build}/sim/cuda:{place.build}/sim/nvml",
                    "VGPU_SIM_STATE=/sim/machine", *options["env"]]})
        spec["mounts"] += [mount_of("/usr/" + name, "bind", "/usr/" + name, "rbind", "ro")
                           for name in os.listdir("/usr") if name != "local"]
        # Below the build, which may lie in /tmp.
        spec["mounts"] += [mount_of(to, "tmpfs", "tmpfs", "mode=1777") for to in options["tmpfs"]]
        spec["mounts"] += [mount_of(place.build, "bind", place.build, "rbind", "ro"),
                           mount_of("/sim", "bind", place.sim, "rbind", "rw")]
        for volume in options["volumes"]:
            source, to, *how = volume.split(":")
            spec["mounts"].append(mount_of(to, "bind", place.host(source), "rbind", *how))
        spec["mounts"] += [mount_of(m["containerPath"], "bind", m["hostPath"], *m["options"]) for m in mounts]
        with open(f"{bundle}/config.json", "w", encoding="utf-8") as file:
            json.dump(spec, file)
        self.process = subprocess.Popen(["runc", "run", "--bundle", bundle, self.name], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def execute(self, script):
        return run(["runc", "exec", self.name, "/bin/sh", "-c", script])

    def end(self):
        """What it said."""
        try:
            return self.process.communicate(timeout=30)[0]
        finally:
            run(["runc", "delete", "--force", self.name])
