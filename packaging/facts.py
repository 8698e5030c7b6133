"""The facts that packages state, read from the manifests.

Shell scripts read them with:

    eval "$(python3 packaging/facts.py)"

The environment can change where the programs are (SMALT_BIN_DIR, target/release by default), their
Rust target (SMALT_TARGET, this machine's) and where packages go (PACKAGES_DIR, packages in the BUILD_DIR).
"""

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# The programs of a package with the folders of their crates.
PROGRAMS = {"smalt": "emulator", "smalt-sweeper": "sweeper", "smalt-listener": "listener"}
# Links to `smalt` in the image.
AZURITE_NAMES = ["azurite", "azurite-blob", "azurite-queue", "azurite-table"]
LICENCE_FILES = ["LICENSE-APACHE", "LICENSE-MIT"]

# The limit of every program and of every compressed image.
SIZE_LIMIT_BYTES = 15_000_000


class Platform(NamedTuple):
    """The names that registries give a Rust target."""

    arch: str  # OCI and Debian
    npm: dict[str, list[str]]  # fields of package.json
    wheel: str  # platform tag; {glibc} stands for the oldest version that the programs run on


PLATFORMS = {
    "x86_64-unknown-linux-gnu": Platform(
        "amd64",
        {"os": ["linux"], "cpu": ["x64"], "libc": ["glibc"]},
        "manylinux_{glibc}_x86_64",
    ),
    "aarch64-unknown-linux-gnu": Platform(
        "arm64",
        {"os": ["linux"], "cpu": ["arm64"], "libc": ["glibc"]},
        "manylinux_{glibc}_aarch64",
    ),
    "x86_64-unknown-linux-musl": Platform(
        "amd64",
        {"os": ["linux"], "cpu": ["x64"], "libc": ["musl"]},
        "musllinux_1_2_x86_64",
    ),
    "aarch64-unknown-linux-musl": Platform(
        "arm64",
        {"os": ["linux"], "cpu": ["arm64"], "libc": ["musl"]},
        "musllinux_1_2_aarch64",
    ),
    "x86_64-apple-darwin": Platform(
        "amd64", {"os": ["darwin"], "cpu": ["x64"]}, "macosx_10_12_x86_64"
    ),
    "aarch64-apple-darwin": Platform(
        "arm64", {"os": ["darwin"], "cpu": ["arm64"]}, "macosx_11_0_arm64"
    ),
}


def manifest(folder: str = ".") -> dict:
    """Returns the Cargo.toml of a folder."""
    return tomllib.loads((ROOT / folder / "Cargo.toml").read_text())


WORKSPACE = manifest()["workspace"]["package"]
VERSION = WORKSPACE["version"]
LICENCE = WORKSPACE["license"]
# Empty until the project has a public repository.
REPOSITORY = WORKSPACE.get("repository", "")


def crates() -> list[str]:
    """Returns the crates to publish, each after its dependencies."""
    packages = [manifest(folder)["package"] for folder in manifest()["workspace"]["members"]]
    return [package["name"] for package in packages if package.get("publish", True)]


def description(program: str = "smalt") -> str:
    """Returns the description of the crate of a program."""
    return manifest(PROGRAMS[program])["package"]["description"]


def run(*command: str) -> str:
    """Returns the output of a command."""
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, cwd=ROOT).stdout


def glibc() -> str:
    """Returns the oldest glibc that all programs run on in the form of a wheel tag: `2_34`."""
    found = [(2, 17)]
    for program in PROGRAMS:
        symbols = run("readelf", "--version-info", "--wide", str(BIN / program))
        found += [(int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols)]
    return "{}_{}".format(*max(found))


BIN = (ROOT / os.environ.get("SMALT_BIN_DIR", "target/release")).resolve()
OUT = (ROOT / os.environ.get("PACKAGES_DIR", os.environ.get("BUILD_DIR", "build") + "/packages")).resolve()
TARGET = os.environ.get("SMALT_TARGET") or re.findall(r"host: (\S+)", run("rustc", "-vV"))[0]
PLATFORM = PLATFORMS[TARGET]
# The time of the commit replaces the time of the build, so that packages are reproducible.
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct"))

if __name__ == "__main__":
    facts = {
        "version": VERSION,
        "licence": LICENCE,
        "description": description(),
        "programs": " ".join(PROGRAMS),
        "crates": " ".join(crates()),
        "size_limit": SIZE_LIMIT_BYTES,
        "target": TARGET,
        "arch": PLATFORM.arch,
        "bin": BIN,
        "out": OUT,
    }
    for name, value in facts.items():
        print(f"{name}={shlex.quote(str(value))}")
    print(f"export SOURCE_DATE_EPOCH={EPOCH}")
