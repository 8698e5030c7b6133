"""Builds the container images of the emulator and of both workers, without a container engine.

    python3 packaging/image.py [PROGRAM...]

Each image is one layer: the program, busybox for a shell and health checks, and the shared libraries
that they need. The output is an OCI layout, and a tar file of it that also contains the
`manifest.json` of `docker save`, so that every version of Docker and Podman loads it.
All times are the time of the commit: the same programs give the same digest.

busybox comes from `apt-get download` of Debian or Ubuntu, which does not need root.
"""

import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

import facts

# Health checks use `nc -z`, which the nc of Debian's busybox lacks.
TOOLS = ["busybox-static", "netcat-traditional"]
# The packages of the shared libraries that a Rust program needs.
LIBRARY_PACKAGES = ["libc6", "libgcc-s1"]
BUSYBOX = "bin/busybox"
NETCAT = "bin/nc.traditional"

# The user of the workers.
NOBODY = "65532:65532"
ANY_USER_MAY_WRITE = 0o1777
ETC = {
    "etc/passwd": "root:x:0:0:root:/data:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}

# The licences of busybox and glibc.
SHIPPED_LICENCES = "GPL-2.0-only AND LGPL-2.1-or-later"


def health(url: str) -> dict:
    """Returns a health check as Docker stores it in the configuration of an image."""
    second = 1_000_000_000
    command = f"wget -q -O - {url}"
    return {
        "Test": ["CMD-SHELL", command],
        "Interval": 10 * second,
        "Timeout": 5 * second,
        "StartPeriod": 5 * second,
        "Retries": 3,
    }


def worker(prefix: str, program: str, ports: list[str], **environment: str) -> dict:
    """Returns the configuration of the image of a worker."""
    name = program.removeprefix("smalt-")
    return {
        "User": NOBODY,
        "Env": [f"{prefix}_{key}={value}" for key, value in environment.items()],
        "Entrypoint": [program],
        "Cmd": ["run", "--config", f"/etc/smalt/{name}.toml"],
        "ExposedPorts": {f"{port}/tcp": {} for port in ports},
        "Healthcheck": health(f"http://127.0.0.1:{ports[0]}/readyz"),
        "WorkingDir": "/data",
        "Labels": {},
    }


IMAGES = {
    "smalt": {
        "Env": [],
        "Cmd": ["azurite", "-l", "/data"]
        + ["--blobHost", "0.0.0.0", "--queueHost", "0.0.0.0", "--tableHost", "0.0.0.0"],
        "ExposedPorts": {f"{port}/tcp": {} for port in range(10000, 10004)},
        "Volumes": {"/data": {}},
        "Healthcheck": health("http://127.0.0.1:10003/health"),
        "WorkingDir": "/data",
        # Tells Spring Boot what the service is when the image has another name than Azurite's.
        "Labels": {"org.springframework.boot.service-connection": "azure-storage/azurite"},
    },
    "smalt-sweeper": worker(
        "SWEEPER",
        "smalt-sweeper",
        ["9110"],
        LOG="json",
        HEALTH="0.0.0.0:9110",
        METRICS="0.0.0.0:9110",
    ),
    "smalt-listener": worker(
        "LISTENER",
        "smalt-listener",
        ["9100", "9101"],
        LOG="json",
        HEALTH="0.0.0.0:9100",
        METRICS="0.0.0.0:9101",
    ),
}


def tools() -> Path:
    """Returns the folder with the unpacked Debian packages."""
    folder = facts.OUT / "image" / "tools"
    if not (folder / NETCAT).exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in TOOLS:
            if not download(name, folder):
                # A fresh machine has no package lists.
                subprocess.run(["apt-get", "update", "-qq"], check=True)
                if not download(name, folder):
                    raise SystemExit(f"FAILED: apt-get cannot download {name}")
            (archive,) = folder.glob(f"{name}_*.deb")
            subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)
    return folder


def download(name: str, folder: Path) -> bool:
    """Downloads a package into a folder; returns whether that worked."""
    command = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", name]
    return subprocess.run(command, check=False, cwd=folder).returncode == 0


def libraries(program: Path) -> list[Path]:
    """Returns the shared libraries of a program and its loader; none for a static program."""
    done = subprocess.run(["ldd", program], check=False, text=True, capture_output=True)
    if "not a dynamic executable" in done.stderr or "statically linked" in done.stdout:
        return []
    if done.returncode != 0 or "not found" in done.stdout:
        raise SystemExit(f"FAILED: ldd {program}: {done.stdout}{done.stderr}")
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", done.stdout)]


class Layer:
    """The files (bytes, mode), links (target) and folders (mode) of an image by path."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, int]] = {}
        self.links: dict[str, str] = {}
        self.folders: dict[str, int] = {}

    def copy(self, source: Path, path: str, mode: int = 0o644) -> None:
        self.files[path] = (source.read_bytes(), mode)

    def program(self, source: Path, path: str) -> None:
        """Adds a program, and its libraries at the paths where the loader finds them."""
        self.copy(source, path, 0o755)
        for library in libraries(source):
            self.copy(library, str(library).lstrip("/"), 0o755)
            for name in LIBRARY_PACKAGES:
                self.copyright(Path("/"), name)

    def copyright(self, root: Path, package: str) -> None:
        """Adds the licence of a Debian package."""
        path = f"usr/share/doc/{package}/copyright"
        self.copy(root / path, path)

    def tar(self) -> bytes:
        for path in [*self.files, *self.links]:
            for parent in list(Path(path).parents)[:-1]:
                self.folders.setdefault(str(parent), 0o755)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for path in sorted([*self.folders, *self.files, *self.links]):
                entry = tarfile.TarInfo(path)
                entry.mtime = facts.EPOCH
                content = None
                if path in self.folders:
                    entry.type, entry.mode = tarfile.DIRTYPE, self.folders[path]
                elif path in self.links:
                    entry.type, entry.linkname = tarfile.SYMTYPE, self.links[path]
                else:
                    data, entry.mode = self.files[path]
                    entry.size, content = len(data), io.BytesIO(data)
                archive.addfile(entry, content)
        return buffer.getvalue()


def layer(program: str) -> Layer:
    """Returns the content of the image of one program."""
    made, unpacked = Layer(), tools()
    made.program(facts.BIN / program, f"usr/local/bin/{program}")
    if program == "smalt":
        for name in facts.AZURITE_NAMES:
            made.links[f"usr/local/bin/{name}"] = program
    made.program(unpacked / BUSYBOX, BUSYBOX)
    for applet in facts.run(str(unpacked / BUSYBOX), "--list").split():
        made.links[f"bin/{applet}"] = "busybox"
    del made.links["bin/busybox"], made.links["bin/nc"]
    made.program(unpacked / NETCAT, "bin/nc")
    for path, text in ETC.items():
        made.files[path] = (text.encode(), 0o644)
    for folder in ["data", "tmp"]:
        made.folders[folder] = ANY_USER_MAY_WRITE
    for name in facts.LICENCE_FILES:
        made.copy(facts.ROOT / name, f"usr/share/doc/smalt/{name}")
    for name in TOOLS:
        made.copyright(unpacked, name)
    return made


class Layout:
    """An OCI layout: a folder of blobs with their digests as names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "blobs" / "sha256").mkdir(parents=True)
        self.write("oci-layout", {"imageLayoutVersion": "1.0.0"})

    def write(self, name: str, document: object) -> None:
        (self.folder / name).write_bytes(encoded(document))

    def blob(self, data: bytes, media_type: str) -> dict:
        """Adds a blob and returns its descriptor."""
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs" / "sha256" / digest).write_bytes(data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def document(self, document: object, kind: str) -> dict:
        return self.blob(encoded(document), f"application/vnd.oci.image.{kind}.v1+json")


def encoded(document: object) -> bytes:
    return json.dumps(document, indent=2, sort_keys=True).encode()


def annotations(program: str) -> dict[str, str]:
    """Returns what both the labels and the annotations of an image say."""
    known = {
        "title": program,
        "description": facts.description(program),
        "version": facts.VERSION,
        "licenses": f"({facts.LICENCE}) AND {SHIPPED_LICENCES}",
        "source": facts.REPOSITORY,
    }
    return {f"org.opencontainers.image.{name}": text for name, text in known.items() if text}


def build(program: str) -> None:
    """Writes the layout and the tar file of one image and prints its digest and size."""
    layout = Layout(facts.OUT / "image" / program)
    created = datetime.fromtimestamp(facts.EPOCH, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    content = layer(program).tar()
    packed = layout.blob(
        gzip.compress(content, 6, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip"
    )
    config = dict(IMAGES[program])
    config["Env"] = ["PATH=/usr/local/bin:/bin", *config["Env"]]
    config["Labels"] = {**annotations(program), **config["Labels"]}
    settings = layout.document(
        {
            "architecture": facts.PLATFORM.arch,
            "os": "linux",
            "created": created,
            "config": config,
            "rootfs": {
                "type": "layers",
                "diff_ids": ["sha256:" + hashlib.sha256(content).hexdigest()],
            },
            "history": [{"created": created, "created_by": "packaging/image.py"}],
        },
        "config",
    )
    manifest = layout.document(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": settings,
            "layers": [packed],
            "annotations": annotations(program),
        },
        "manifest",
    )
    tag = {"org.opencontainers.image.ref.name": facts.VERSION}
    layout.write("index.json", {"schemaVersion": 2, "manifests": [manifest | {"annotations": tag}]})
    place = {name: f"blobs/sha256/{part['digest'].removeprefix('sha256:')}"
             for name, part in {"config": settings, "layer": packed}.items()}
    layout.write(
        "manifest.json",
        [
            {
                "Config": place["config"],
                "RepoTags": [f"{program}:{facts.VERSION}"],
                "Layers": [place["layer"]],
            }
        ],
    )
    archive(layout.folder)
    compressed = sum(part["size"] for part in [packed, settings, manifest])
    print(
        f"{program}:{facts.VERSION} {facts.PLATFORM.arch} {manifest['digest']}"
        f" {compressed / 1e6:.1f} MB compressed, {len(content) / 1e6:.1f} MB unpacked"
    )
    if compressed > facts.SIZE_LIMIT_BYTES:
        raise SystemExit(f"FAILED: the image {program} is larger than {facts.SIZE_LIMIT_BYTES} bytes")


def archive(folder: Path) -> None:
    """Writes the layout as a tar file."""
    with tarfile.open(folder.with_suffix(".tar"), "w", format=tarfile.GNU_FORMAT) as packed:
        for path in sorted(folder.rglob("*")):
            entry = packed.gettarinfo(path, str(path.relative_to(folder)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = facts.EPOCH
            entry.mode = 0o755 if path.is_dir() else 0o644
            packed.addfile(entry, path.open("rb") if path.is_file() else None)


if __name__ == "__main__":
    for name in sys.argv[1:] or IMAGES:
        build(name)
