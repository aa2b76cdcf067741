# SPDX-License-Identifier: Apache-2.0
"""Containers for a test: what docs/containers.md has for a runtime, translated for runc, with the simulated node in the place of a GPU."""

import json
import os
import shutil
import subprocess
import tempfile
import time

import page

# What the root has besides what is mounted; what is in /usr is the machine's own, read-only, but for /usr/local.
FOLDERS = ["proc", "dev", "sys", "usr/local", "etc", "run", "root", "tmp", "var/tmp"]
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
# What of the host the page's commands write to, which is below the place's folder here.
WRITTEN = ("/srv/", "/run/", "/etc/cdi")
LIBRARY = "/usr/local/lib/vgpu"
# What Docker leaves a container's root; without the change of root, which leads to a place without any limit (SECURITY.md).
CAPABILITIES = ["CAP_" + name for name in ("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
                                           "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID")]


class Skipped(Exception):
    pass


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
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
        library = self.host(LIBRARY)
        os.makedirs(library)
        shutil.copy(os.path.join(build, "src/tenant/libvgpu.so"), library)
        with open(library + "/ld.so.preload", "w", encoding="utf-8") as file:
            file.write("/etc/vgpu-lib/libvgpu.so\n")
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

    def environment(self):
        """What finds the programs of the build and the simulated node, in a container."""
        return {"PATH": f"{self.build}/src/cli:{self.build}/sim/tool:{self.build}/examples:/usr/bin:/bin",
                "LD_LIBRARY_PATH": f"{self.build}/sim/cuda:{self.build}/sim/nvml", "VGPU_SIM_STATE": "/sim/machine"}

    def mounts(self):
        """(source, place in the container, ro or rw) of the same, and of the image's programs."""
        return [*(("/usr/" + name, "/usr/" + name, "ro") for name in os.listdir("/usr") if name != "local"),
                (self.build, self.build, "ro"), (self.sim, "/sim", "rw")]

    def prepare(self, text):
        """Runs a shell text of the documentation."""
        for root in WRITTEN:
            os.makedirs(self.host(root), exist_ok=True)
            text = text.replace(root, self.host(root))
        done = run(["sh", "-ec", text], env={**os.environ, "PATH": f"{self.build}/src/cli:" + os.environ["PATH"],
                                             "VGPU_LIBDIR": self.host(LIBRARY)})
        if done.returncode:
            raise AssertionError(text + done.stdout)

    def device(self, name):
        """The mounts of a device that is called by its name, by the specification that the page's commands have made."""
        with open(self.host("/etc/cdi/vgpu.json"), encoding="utf-8") as file:
            specification = json.load(file)
        found = [d for d in specification["devices"] if f"{specification['kind']}={d['name']}" == name]
        if len(found) != 1:
            raise AssertionError(f"{name}: {specification}")
        return [m for part in (specification, found[0]) for m in part["containerEdits"]["mounts"]]

    def remove(self):
        for i in range(self.count):
            subprocess.run(["umount", "-l", f"{self.folder}/{i}/rootfs"], check=False,
                           stderr=subprocess.DEVNULL)
        shutil.rmtree(self.sim)
        # A runtime may still be putting a container away there.
        for _ in range(100):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.exists(self.folder):
                return
            time.sleep(0.1)
        raise OSError(f"{self.folder} cannot be removed")


def mount_of(to, kind, source, *options):
    return {"destination": to, "type": kind, "source": source, "options": list(options)}


class Container:
    """One that runs a shell script, in the root that Docker would give it: an overlay."""

    def __init__(self, place, line, script, mounts=(), capabilities=None):
        """mounts: more of them, in the form of a specification of the Container Device Interface. capabilities: others than runc's own."""
        options = page.read(line)
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
            "env": [*(f"{name}={value}" for name, value in place.environment().items()), *options["env"]]})
        if capabilities:
            spec["process"]["capabilities"] = {which: capabilities for which in ("bounding", "effective", "permitted")}
        # Below the build, which may lie in /tmp.
        spec["mounts"] += [mount_of(to, "tmpfs", "tmpfs", "mode=1777") for to in options["tmpfs"]]
        spec["mounts"] += [mount_of(to, "bind", source, "rbind", how) for source, to, how in place.mounts()]
        for volume in options["volumes"]:
            source, to, *how = volume.split(":")
            spec["mounts"].append(mount_of(to, "bind", place.host(source), "rbind", *how))
        devices = [mount for name in options["devices"] for mount in place.device(name)]
        spec["mounts"] += [mount_of(m["containerPath"], "bind", m["hostPath"], *m["options"]) for m in (*devices, *mounts)]
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
