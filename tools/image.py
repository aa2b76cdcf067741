#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image.py BUILD ARCHIVE [NAME]: the image of all programs for Kubernetes, as an OCI archive, and beside it what is in it
(ARCHIVE with .spdx.json in the place of .tar).

No network, no container engine and no shell in the image: the programs, libvgpu.so, the libraries that they load, as this
machine has them, and these libraries' licences. The same files give the same digest. BUILD is a folder that was built
with -Ddaemons=enabled (make kube)."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

import oci

PROGRAMS = {"vgpu": "src/cli/vgpu", "vgpu-plan": "src/plan/vgpu-plan", "vgpu-scheduler": "src/scheduler/vgpu-scheduler",
            "vgpu-device-plugin": "src/plugin/vgpu-device-plugin", "vgpu-monitor": "src/monitor/vgpu-monitor"}
LIBRARY = "src/tenant/libvgpu.so"
LIBRARY_PLACE = "usr/local/lib/vgpu/libvgpu.so"
SBOM_PLACE = "usr/local/share/doc/vgpu/sbom.spdx.json"
USER = 65532  # nobody in particular; what needs root says so in its pod


def output_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip()


def version_of(build):
    with open(os.path.join(build, "meson-info/intro-projectinfo.json"), encoding="utf-8") as f:
        return json.load(f)["version"]


def stripped(source, folder):
    """Without what differs between folders that were built in: debugging information, and the id made of it."""
    place = os.path.join(folder, os.path.basename(source))
    subprocess.run([os.environ.get("OBJCOPY", "objcopy"), "--strip-unneeded", "--remove-section=.note.gnu.build-id", source, place], check=True)
    with open(place, "rb") as f:
        return f.read()


class Package:
    """What the distribution calls the origin of a library; the file itself where it does not say."""

    def __init__(self, name, version="", machine=""):
        self.name, self.version, self.machine = name, version, machine
        copyright_file = f"/usr/share/doc/{name}/copyright"
        self.copyright = copyright_file if version and os.path.isfile(copyright_file) else None


def packages_of(paths):
    """Each path's package. Debian knows a file by the name that its package gave it: before or after /lib became /usr/lib."""
    reals = {path: os.path.realpath(path) for path in paths}
    names = {name for real in reals.values() for name in (real, re.sub("^/usr/lib", "/lib", real))}
    owner_of = {path: package for package, path in
                re.findall(r"^([^:,\s]+)(?::\w+)?: (/\S+)$", output_of("dpkg-query", "-S", *sorted(names)), re.M)}
    listed = output_of("dpkg-query", "-W", "-f", "${Package}\t${Version}\t${Architecture}\n", *sorted(set(owner_of.values()))) if owner_of else ""
    known = {fields[0]: Package(*fields) for fields in (line.split("\t") for line in listed.splitlines())}
    found = {}
    for path, real in reals.items():
        owner = owner_of.get(real) or owner_of.get(re.sub("^/usr/lib", "/lib", real))
        found[path.strip("/")] = known.get(owner) or Package(os.path.basename(real))
    return found


def sbom(name, version, files, packages):
    """SPDX 2.3. The document's own name is made of what it says."""
    def package(ident, package_name, package_version, supplier, purl, license_id):
        entry = {"SPDXID": ident, "name": package_name, "versionInfo": package_version, "supplier": supplier,
                 "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
                 "licenseDeclared": license_id, "copyrightText": "NOASSERTION"}
        if purl:
            entry["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]
        return entry

    listed = [package("SPDXRef-cantaloupe", "cantaloupe", version, "NOASSERTION", f"pkg:generic/cantaloupe@{version}", "Apache-2.0")]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relatedSpdxElement": "SPDXRef-cantaloupe", "relationshipType": "DESCRIBES"}]
    idents = {}
    for one in sorted(packages.values(), key=lambda p: p.name):
        if one.name in idents:
            continue
        ident = idents[one.name] = "SPDXRef-package-" + re.sub(r"[^A-Za-z0-9.-]", "-", one.name)
        purl = f"pkg:deb/debian/{one.name}@{one.version}?arch={one.machine}" if one.version else ""
        listed.append(package(ident, one.name, one.version, "Organization: Debian" if one.version else "NOASSERTION", purl, "NOASSERTION"))
        relations.append({"spdxElementId": "SPDXRef-cantaloupe", "relatedSpdxElement": ident, "relationshipType": "DEPENDS_ON"})
    entries = []
    for place, data in sorted(files.items()):
        ident = "SPDXRef-file-" + re.sub(r"[^A-Za-z0-9.-]", "-", place)
        entries.append({"SPDXID": ident, "fileName": "./" + place, "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION",
                        "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                                      {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}]})
        owner = idents[packages[place].name] if place in packages else "SPDXRef-cantaloupe"
        relations.append({"spdxElementId": owner, "relatedSpdxElement": ident, "relationshipType": "CONTAINS"})
    body = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
            "creationInfo": {"created": oci.EPOCH, "creators": ["Tool: cantaloupe tools/image.py"]},
            "packages": listed, "files": entries, "relationships": relations}
    body["documentNamespace"] = "urn:sha256:" + hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return json.dumps(body, indent=1, sort_keys=True) + "\n"


def add_libraries(layer, programs):
    """Gives the package of each."""
    # the loader has said what their libraries load, too
    paths = {path for program in programs for path in oci.libraries_of(program)}
    for path in paths:
        with open(path, "rb") as f:
            layer.add_bytes(path, f.read(), 0o755)
    packages = packages_of(paths)
    for one in packages.values():
        if one.copyright:
            with open(one.copyright, "rb") as f:
                layer.add_bytes(f"usr/share/doc/{one.name}/copyright", f.read())
    return packages


def layer_of(build, name, version):
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    layer = oci.Layer()
    layer.add_folder("tmp", 0o1777)
    for folder in ("proc", "sys", "dev", "etc", "run", "var/lib", "config"):
        layer.add_folder(folder)
    layer.add_link("var/run", "/run")
    layer.add_text("etc/passwd", f"root:x:0:0:root:/:/sbin/nologin\nvgpu:x:{USER}:{USER}:vgpu:/:/sbin/nologin\n")
    layer.add_text("etc/group", f"root:x:0:\nvgpu:x:{USER}:\n")
    with open(os.path.join(root, "LICENSE"), "rb") as f:
        layer.add_bytes("usr/local/share/doc/vgpu/LICENSE", f.read())
    with tempfile.TemporaryDirectory() as folder:
        for program, path in PROGRAMS.items():
            layer.add_bytes("usr/local/bin/" + program, stripped(os.path.join(build, path), folder), 0o755)
        layer.add_bytes(LIBRARY_PLACE, stripped(os.path.join(build, LIBRARY), folder), 0o755)
    packages = add_libraries(layer, [os.path.join(build, path) for path in (*PROGRAMS.values(), LIBRARY)])
    programs = {place: data for place, (_, _, data, _) in layer.entries.items()
                if place in packages or place == LIBRARY_PLACE or place.startswith("usr/local/bin/") and data}
    text = sbom(name, version, programs, packages)
    layer.add_text(SBOM_PLACE, text)
    return layer, text


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    build, archive = sys.argv[1:3]
    version = version_of(build)
    name = sys.argv[3] if len(sys.argv) == 4 else "docker.io/cantaloupe/cantaloupe:v" + version
    layer, text = layer_of(build, name, version)
    digest, packed, plain = oci.write_archive(archive, name, layer, {
        "User": f"{USER}:{USER}", "Env": ["PATH=/usr/local/bin"], "Cmd": ["vgpu", "help"], "WorkingDir": "/"},
        labels={"org.opencontainers.image.title": "cantaloupe", "org.opencontainers.image.version": version,
                                    "org.opencontainers.image.licenses": "Apache-2.0"})
    with open(re.sub(r"\.tar$", "", archive) + ".spdx.json", "w", encoding="utf-8") as f:
        f.write(text)
    print(f"{archive}: {name}\n{digest}\n{packed / 2**20:.1f} MiB to pull, {plain / 2**20:.1f} MiB unpacked")


if __name__ == "__main__":
    main()
