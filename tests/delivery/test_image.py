#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_image.py BUILD: the image, made twice, is the same; small; whole; and says what is in it."""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "../../tools/image.py")
MOST_BYTES = 30 * 2**20
PROGRAMS = ["vgpu", "vgpu-plan", "vgpu-scheduler", "vgpu-device-plugin", "vgpu-monitor"]
SKIPPED = 77
BUILD = ""


def make(folder, **changed):
    archive = os.path.join(folder, "image.tar")
    command = [sys.executable, TOOL, BUILD, archive]
    if os.geteuid() == 0:
        command = ["unshare", "--net", *command]
    subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, **changed})
    with open(archive, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest(), archive


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.digest, cls.archive = make(cls.folder.name)
        with tarfile.open(cls.archive) as tar:
            cls.blobs = {m.name: tar.extractfile(m).read() for m in tar.getmembers() if m.isfile()}
        cls.manifest = cls.blob(json.loads(cls.blobs["index.json"])["manifests"][0])
        cls.config = cls.blob(json.loads(cls.manifest)["config"])
        cls.root = os.path.join(cls.folder.name, "root")
        os.mkdir(cls.root)
        cls.layer = gzip.decompress(cls.blob(json.loads(cls.manifest)["layers"][0]))
        plain = os.path.join(cls.folder.name, "layer.tar")
        with open(plain, "wb") as f:
            f.write(cls.layer)
        with tarfile.open(plain) as tar:
            cls.members = tar.getmembers()
            tar.extractall(cls.root)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def blob(cls, descriptor):
        data = cls.blobs["blobs/" + descriptor["digest"].replace(":", "/")]
        assert descriptor["size"] == len(data) and descriptor["digest"] == "sha256:" + hashlib.sha256(data).hexdigest()
        return data

    def test_made_again_it_is_the_same(self):
        previous = os.umask(0o077)
        try:
            with tempfile.TemporaryDirectory() as folder:
                self.assertEqual(make(folder, TZ="Pacific/Chatham", LC_ALL="C", PYTHONHASHSEED="7")[0], self.digest)
        finally:
            os.umask(previous)

    def test_it_is_small(self):
        self.assertLess(os.path.getsize(self.archive), MOST_BYTES)

    def test_no_shell_and_nothing_for_set_user(self):
        names = {m.name for m in self.members}
        self.assertFalse({n for n in names if re.search(r"/(sh|bash|busybox|dash)$", n)})
        self.assertFalse([m.name for m in self.members if m.mode & 0o6000])
        self.assertFalse([m.name for m in self.members if m.mode & 0o002 and not m.issym() and m.name != "tmp"])
        self.assertEqual(json.loads(self.config)["config"]["User"], "65532:65532")

    def test_the_layer_is_what_the_config_says(self):
        self.assertEqual(json.loads(self.config)["rootfs"]["diff_ids"], ["sha256:" + hashlib.sha256(self.layer).hexdigest()])

    def test_nothing_of_the_folder_that_it_was_built_in(self):
        source = os.path.dirname(os.path.dirname(os.path.abspath(BUILD))).encode()
        for program in PROGRAMS:
            with open(os.path.join(self.root, "usr/local/bin", program), "rb") as f:
                self.assertNotIn(source, f.read(), program)

    def test_each_program_runs_from_it(self):
        if os.geteuid() != 0:
            self.skipTest("it takes root")
        for program in PROGRAMS:
            done = subprocess.run(["chroot", "--userspec=65532:65532", self.root, "/usr/local/bin/" + program, "--version"],
                                  capture_output=True, text=True, env={"PATH": os.environ["PATH"]}, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_bill_of_materials_names_each_file(self):
        with open(os.path.join(self.folder.name, "image.spdx.json"), encoding="utf-8") as f:
            beside = f.read()
        with open(os.path.join(self.root, "usr/local/share/doc/vgpu/sbom.spdx.json"), encoding="utf-8") as f:
            self.assertEqual(f.read(), beside)
        bill = json.loads(beside)
        told = {}
        for one in bill["files"]:
            sums = {c["algorithm"]: c["checksumValue"] for c in one["checksums"]}
            told[one["fileName"][2:]] = sums["SHA256"]
        there = {}
        for member in self.members:
            if member.isfile() and (member.mode & 0o111 or ".so" in member.name):
                with open(os.path.join(self.root, member.name), "rb") as f:
                    there[member.name] = hashlib.sha256(f.read()).hexdigest()
        self.assertEqual(told, there)
        idents = [e["SPDXID"] for e in bill["packages"] + bill["files"]]
        self.assertEqual(len(idents), len(set(idents)))
        owned = {r["relatedSpdxElement"] for r in bill["relationships"] if r["relationshipType"] == "CONTAINS"}
        self.assertEqual(owned, {e["SPDXID"] for e in bill["files"]})
        known = set(idents) | {"SPDXRef-DOCUMENT"}
        for relation in bill["relationships"]:
            self.assertLessEqual({relation["spdxElementId"], relation["relatedSpdxElement"]}, known)


if __name__ == "__main__":
    BUILD = sys.argv[1]
    if not shutil.which("objcopy") or not shutil.which("ldd"):
        print("it takes objcopy and ldd")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
