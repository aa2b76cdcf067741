#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image.py ARCHIVE NAME FILE[:PLACE]|LINK=TARGET...: a container image without a registry, as an OCI archive.

It holds a static busybox with its links, and the files with the libraries that they load, which
keep the places that they have here.
"""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

BUSYBOX = shutil.which("busybox") or "/bin/busybox"
OCI = "application/vnd.oci.image."
EPOCH = "1970-01-01T00:00:00Z"


class Layer:
    """A tar archive in memory, in which every folder and file is entered once."""

    def __init__(self):
        self.bytes, self.seen = io.BytesIO(), set()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w")

    def enter(self, place, kind, mode=0o755, data=b"", target=""):
        place = place.strip("/")
        if place in self.seen:
            return
        self.seen.add(place)
        if "/" in place:
            self.enter(os.path.dirname(place), tarfile.DIRTYPE)
        info = tarfile.TarInfo(place)
        info.type, info.mode, info.size, info.linkname = kind, mode, len(data), target
        self.tar.addfile(info, io.BytesIO(data))

    def add_text(self, place, text):
        self.enter(place, tarfile.REGTYPE, 0o644, text.encode())

    def add_program(self, source, place):
        with open(source, "rb") as f:
            self.enter(place, tarfile.REGTYPE, os.stat(source).st_mode & 0o777, f.read())
        listed = subprocess.run(["ldd", source], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True, check=False).stdout
        for library in re.findall(r"(/\S+) \(0x", listed):
            if library != source:
                self.add_program(library, library)

    def finish(self):
        self.tar.close()
        return self.bytes.getvalue()


def layer_of(files):
    layer = Layer()
    layer.enter("tmp", tarfile.DIRTYPE, 0o1777)
    for folder in ("proc", "sys", "dev", "etc"):
        layer.enter(folder, tarfile.DIRTYPE)
    layer.add_program(BUSYBOX, "bin/busybox")
    applets = subprocess.run([BUSYBOX, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    for applet in applets.split():
        layer.enter("bin/" + applet, tarfile.SYMTYPE, target="busybox")
    layer.add_text("etc/passwd", "root:x:0:0::/:/bin/sh\n")
    layer.add_text("etc/group", "root:x:0:\n")
    for name in files:
        if "=" in name:
            place, _, target = name.partition("=")
            layer.enter(place, tarfile.SYMTYPE, target=target)
            continue
        source, _, place = name.partition(":")
        layer.add_program(source, place or source)
    return layer.finish()


def archive(path, name, files):
    blobs = {}

    def blob(kind, data):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": OCI + kind, "digest": "sha256:" + digest, "size": len(data)}

    def document(kind, value):
        return blob(kind, json.dumps(value).encode())

    content = blob("layer.v1.tar", layer_of(files))
    config = document("config.v1+json", {
        "architecture": os.uname().machine.replace("x86_64", "amd64").replace("aarch64", "arm64"), "os": "linux",
        "created": EPOCH,
        "config": {"Cmd": ["/bin/tail", "-f", "/dev/null"], "Env": ["PATH=/bin:/usr/bin"], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [content["digest"]]},
    })
    manifest = document("manifest.v1+json", {
        "schemaVersion": 2, "mediaType": OCI + "manifest.v1+json", "config": config, "layers": [content]})
    manifest["annotations"] = {"io.containerd.image.name": name}
    whole = Layer()
    whole.add_text("oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}))
    whole.add_text("index.json", json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
    for digest, data in blobs.items():
        whole.enter("blobs/sha256/" + digest, tarfile.REGTYPE, 0o644, data)
    with open(path, "wb") as f:
        f.write(whole.finish())


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    archive(sys.argv[1], sys.argv[2], sys.argv[3:])
