# SPDX-License-Identifier: Apache-2.0
"""Container images as OCI archives, without a registry, a network or a running daemon. The same files give the same
bytes: entries are sorted, belong to root, and are of the time 0."""

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile

OCI = "application/vnd.oci.image."
EPOCH = "1970-01-01T00:00:00Z"
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def libraries_of(program):
    """Paths of the libraries that it loads, and the loader, as this machine resolves them."""
    listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    return [path for path in re.findall(r"(/\S+) \(0x", listed) if path != program]


class Layer:
    """Files by place, each entered once; their folders come by themselves."""

    def __init__(self):
        self.entries = {}

    def enter(self, place, kind, mode=0o755, data=b"", target=""):
        place = place.strip("/")
        if not place or place in self.entries:
            return
        self.enter(os.path.dirname(place), tarfile.DIRTYPE)
        self.entries[place] = (kind, mode, data, target)

    def add_folder(self, place, mode=0o755):
        self.enter(place, tarfile.DIRTYPE, mode)

    def add_link(self, place, target):
        self.enter(place, tarfile.SYMTYPE, 0o777, target=target)

    def add_bytes(self, place, data, mode=0o644):
        self.enter(place, tarfile.REGTYPE, mode, data)

    def add_text(self, place, text):
        self.add_bytes(place, text.encode())

    def tar(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for place in sorted(self.entries):
                kind, mode, data, target = self.entries[place]
                info = tarfile.TarInfo(place)
                info.type, info.mode, info.size, info.linkname = kind, mode, len(data), target
                tar.addfile(info, io.BytesIO(data))
        return out.getvalue()


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def write_archive(path, name, layer, settings, labels):
    """settings: the image's Cmd, Env and so on. Gives the digest of the manifest, by which the image is known, and the layer's size,
    packed and plain."""
    blobs = {}

    def blob(kind, data):
        blobs[digest_of(data)] = data
        return {"mediaType": OCI + kind, "digest": digest_of(data), "size": len(data)}

    def document(kind, value):
        return blob(kind, json.dumps(value, sort_keys=True).encode())

    plain = layer.tar()
    content = blob("layer.v1.tar+gzip", gzip.compress(plain, 9, mtime=0))
    config = document("config.v1+json", {
        "architecture": MACHINES.get(os.uname().machine, os.uname().machine), "os": "linux", "created": EPOCH,
        "config": dict(settings, Labels=labels), "rootfs": {"type": "layers", "diff_ids": [digest_of(plain)]}})
    manifest = document("manifest.v1+json", {
        "schemaVersion": 2, "mediaType": OCI + "manifest.v1+json", "config": config, "layers": [content]})
    entry = dict(manifest, annotations={
        "io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]})
    whole = Layer()
    whole.add_text("oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}))
    whole.add_text("index.json", json.dumps({"schemaVersion": 2, "manifests": [entry]}, sort_keys=True))
    for digest, data in blobs.items():
        whole.add_bytes("blobs/" + digest.replace(":", "/"), data)
    with open(path, "wb") as f:
        f.write(whole.tar())
    return manifest["digest"], content["size"], len(plain)
