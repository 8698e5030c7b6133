"""Builds the container images of the emulator and of both workers, without a container engine.

    python3 packaging/image.py

Each image is one layer: the program, busybox for a shell and for health checks, and the shared
libraries that they ask for. The result is an OCI layout and the same as a tar file, which also has
the `manifest.json` of `docker save`, so that every version of Docker and Podman loads it.
Neither holds a time but that of the commit: the same programs give the same digest.

Debian's or Ubuntu's `apt-get download` brings busybox; root is not needed.
"""

import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
from datetime import datetime, timezone
from pathlib import Path

import facts

# busybox-static has everything but an `nc` that knows -z, which health checks use.
TOOLS = ["busybox-static", "netcat-traditional"]
# What the shared libraries of a program come from.
LIBRARY_PACKAGES = ["libc6", "libgcc-s1"]
BUSYBOX = "bin/busybox"
NETCAT = "bin/nc.traditional"

# Whoever runs the worker; no name, so that no file has to have it.
NOBODY = "65532:65532"
ANY_USER_MAY_WRITE = 0o1777
ETC = {
    "etc/passwd": "root:x:0:0:root:/data:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}

# What busybox and glibc are under, beside the licence of the programs.
SHIPPED_LICENCES = "GPL-2.0-only AND LGPL-2.1-or-later"


def health(url: str) -> dict:
    """The health check of an image, as Docker keeps it in the configuration."""
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
    """The configuration of a worker's image: it runs what /etc/smalt says."""
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
        # By this label Spring Boot knows what the service is, whatever the image is called.
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
    """A folder with the unpacked Debian packages."""
    folder = facts.OUT / "image" / "tools"
    if not (folder / NETCAT).exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in TOOLS:
            if not download(name, folder):
                # A fresh machine has no lists of packages yet.
                subprocess.run(["apt-get", "update", "-qq"], check=True)
                if not download(name, folder):
                    raise SystemExit(f"FAILED: apt-get cannot download {name}")
            (archive,) = folder.glob(f"{name}_*.deb")
            subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)
    return folder


def download(name: str, folder: Path) -> bool:
    """Whether apt-get brought a package into a folder."""
    command = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", name]
    return subprocess.run(command, cwd=folder).returncode == 0


def libraries(program: Path) -> list[Path]:
    """The shared libraries of a program and the loader; none when it is linked statically."""
    done = subprocess.run(["ldd", program], text=True, capture_output=True)
    static = "not a dynamic executable" in done.stderr or "statically linked" in done.stdout
    return [] if static else [Path(path) for path in re.findall(r"(/\S+) \(0x", done.stdout)]


class Layer:
    """Files of an image by path: each is bytes, the target of a link, or a folder's mode."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, int]] = {}
        self.links: dict[str, str] = {}
        self.folders: dict[str, int] = {}

    def copy(self, source: Path, path: str, mode: int = 0o644) -> None:
        self.files[path] = (source.read_bytes(), mode)

    def program(self, source: Path, path: str) -> None:
        """A program together with its libraries, which stay where its loader looks for them."""
        self.copy(source, path, 0o755)
        for library in libraries(source):
            self.copy(library, str(library).lstrip("/"), 0o755)
            for name in LIBRARY_PACKAGES:
                self.copyright(Path("/"), name)

    def copyright(self, root: Path, package: str) -> None:
        """What a Debian package that is unpacked in a folder says about its licence."""
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
    """Everything that the image of one program holds."""
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
    """An OCI layout: a folder of blobs that are named by their digests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "blobs" / "sha256").mkdir(parents=True)
        self.write("oci-layout", {"imageLayoutVersion": "1.0.0"})

    def write(self, name: str, document: object) -> None:
        (self.folder / name).write_bytes(encoded(document))

    def blob(self, data: bytes, media_type: str) -> dict:
        """Adds a blob; returns the descriptor that refers to it."""
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs" / "sha256" / digest).write_bytes(data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def document(self, document: object, kind: str) -> dict:
        return self.blob(encoded(document), f"application/vnd.oci.image.{kind}.v1+json")


def encoded(document: object) -> bytes:
    return json.dumps(document, indent=2, sort_keys=True).encode()


def annotations(program: str) -> dict[str, str]:
    """What the image says about itself, as labels and as annotations."""
    known = {
        "title": program,
        "description": facts.description(program),
        "version": facts.VERSION,
        "licenses": f"({facts.LICENCE}) AND {SHIPPED_LICENCES}",
        "source": facts.REPOSITORY,
    }
    return {f"org.opencontainers.image.{name}": text for name, text in known.items() if text}


def build(program: str) -> None:
    """Writes the layout and the tar file of one image, and says how large it is."""
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
    """The layout as one tar file."""
    with tarfile.open(folder.with_suffix(".tar"), "w", format=tarfile.GNU_FORMAT) as packed:
        for path in sorted(folder.rglob("*")):
            entry = packed.gettarinfo(path, str(path.relative_to(folder)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = facts.EPOCH
            entry.mode = 0o755 if path.is_dir() else 0o644
            packed.addfile(entry, path.open("rb") if path.is_file() else None)


if __name__ == "__main__":
    for name in IMAGES:
        build(name)
