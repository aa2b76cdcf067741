# SPDX-License-Identifier: Apache-2.0
"""Runtimes of this machine, where they work: the page's lines as they stand, but for the host's folders, the image and the program.

The image is the root that runc gets, with what it mounts as volumes. In the place of the GPU is the simulated node: for podman as the device
`nvidia.com/gpu=all`, in a /etc/cdi that podman alone sees; for others as more volumes."""

import json
import os
import resource
import shutil
import subprocess
import tarfile

import page
from container import Skipped, run

NAMES = ("docker", "podman", "nerdctl")
# Podman asks for 1048576 of each, which root may not have everywhere, and lets itself have 32768 processes at most.
LIMITS = (("nofile", resource.RLIMIT_NOFILE, 20000), ("nproc", resource.RLIMIT_NPROC, 32768))
SEE_CDI = 'mount -t overlay overlay -o "lowerdir=$0:/etc" /etc && exec "$@"'


class Engine:
    """Skipped where the runtime is not there, does not answer, or runs no container even without a slice."""

    def __init__(self, place, name):
        self.place, self.name = place, name
        self.image = f"vgpu-containers-{os.getpid()}:1"
        self.environment, self.before, self.count = dict(os.environ), [], 0
        if not shutil.which(name):
            raise Skipped("not installed")
        if name == "podman":
            self.keep_podman_apart()
        self.ask("info")
        self.bring_image()
        try:
            self.ask("run", "--rm", *self.options(), self.image, "true")
        except Skipped:
            self.remove()
            raise

    def keep_podman_apart(self):
        """From the machine's own images, containers and networks; and /etc/cdi is the place's, below the machine's /etc."""
        apart = f"{self.place.folder}/podman"
        os.makedirs(apart)
        with open(f"{apart}/storage.conf", "w", encoding="utf-8") as file:
            file.write(f'[storage]\ndriver = "vfs"\nrunroot = "{apart}/run"\ngraphroot = "{apart}/graph"\n')
        with open(f"{apart}/containers.conf", "w", encoding="utf-8") as file:
            file.write(f'[engine]\ntmp_dir = "{apart}/tmp"\nlock_type = "file"\n[network]\nnetwork_config_dir = "{apart}/net"\n')
        self.environment.update(CONTAINERS_STORAGE_CONF=f"{apart}/storage.conf", CONTAINERS_CONF=f"{apart}/containers.conf")
        etc = self.place.host("/etc")
        os.makedirs(etc + "/cdi", exist_ok=True)
        self.before = ["unshare", "--mount", "sh", "-c", SEE_CDI, etc]
        edits = {"mounts": [{"hostPath": source, "containerPath": to, "options": ["rbind", how]} for source, to, how in self.place.mounts()]}
        with open(etc + "/cdi/nvidia.json", "w", encoding="utf-8") as file:
            json.dump({"cdiVersion": "0.3.0", "kind": "nvidia.com/gpu", "devices": [{"name": "all", "containerEdits": edits}]}, file)

    def call(self, *words):
        return run([*self.before, self.name, *words], env=self.environment)

    def ask(self, *words):
        try:
            done = self.call(*words)
        except subprocess.TimeoutExpired as late:
            raise Skipped(f"`{self.name} {words[0]}` does not end") from late
        if done.returncode:
            raise Skipped(f"`{self.name} {words[0]}` does not work here: {(done.stdout.strip() or 'no output').splitlines()[-1]}")
        return done.stdout

    def bring_image(self):
        archive = f"{self.place.folder}/{self.name}.tar"
        with tarfile.open(archive, mode="w") as tar:
            tar.add(self.place.folder + "/lower", ".")  # its links stay links
        self.ask("import", archive, self.image)

    def options(self):
        """What a container gets beside what its line says. `exec` knows nothing of a device's variables."""
        words = ["--network=none", *(f"--env={name}={value}" for name, value in self.place.environment().items())]
        if self.name != "podman":
            return words + [f"--volume={source}:{to}:{how}" for source, to, how in self.place.mounts()]
        for name, limit, most in LIMITS:
            has = resource.getrlimit(limit)[1]
            words.append(f"--ulimit={name}={most if has == resource.RLIM_INFINITY else min(has, most)}")
        return words + ["--security-opt=label=disable", "--device", page.GPUS]

    def takes(self, line):
        """What is docker's is podman's and nerdctl's, too. Other runtimes' /etc/cdi is the machine's own."""
        if page.runtime_of(line) not in ("docker", self.name):
            return False
        return self.name == "podman" or not page.read_line(line)["devices"]

    def words(self, line):
        """What a line asks for, in its own order, without the GPU, which options() has."""
        rest, words = page.words_of(line)[2:], []
        while rest[0].startswith("-"):
            option = rest.pop(0)
            value = [] if option == "--read-only" else [rest.pop(0)]
            if option == "--gpus" or value == [page.GPUS]:
                continue
            words += [option, *(self.place.host(v) if option == "-v" else v for v in value)]
        return words

    def container(self, place, line, script, mounts=()):
        """As container.Container."""
        assert place is self.place and not mounts
        return EngineContainer(self, ["run", *self.options(), *self.words(line)], [self.image, "/bin/sh", "-c", script])

    def remove(self):
        self.call("rmi", "-f", self.image)


class EngineContainer:
    def __init__(self, engine, before, after):
        engine.count += 1
        self.engine, self.name = engine, f"{os.path.basename(engine.place.folder)}-{engine.count}"
        self.process = subprocess.Popen([*engine.before, engine.name, *before, "--name", self.name, *after], env=engine.environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def execute(self, script):
        return self.engine.call("exec", self.name, "/bin/sh", "-c", script)

    def end(self):
        """What it said."""
        try:
            return self.process.communicate(timeout=30)[0]
        finally:
            self.engine.call("rm", "-f", self.name)


class Compose:
    """`docker compose` or `nerdctl compose`: a compose file whose service runs the test's script."""

    def __init__(self, engine):
        self.engine, self.remove = engine, engine.remove
        engine.ask("compose", "version")

    def takes(self, line):
        return page.runtime_of(line) == "compose"

    def container(self, place, line, script, mounts=()):
        assert place is self.engine.place and not mounts
        service = page.read_service(line)
        service["volumes"] = [*(place.host(volume) for volume in service["volumes"]), *(":".join(mount) for mount in place.mounts())]
        service.update(image=self.engine.image, command=["/bin/sh", "-c", script.replace("$", "$$")], environment=place.environment(),
                       network_mode="none")
        path = f"{place.folder}/compose.yaml"
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"services": {"train": service}}, file)  # which is YAML, too
        return EngineContainer(self.engine, ["compose", "-f", path, "run", "-T"], ["train"])
