"""The facts that every package states, each read from the place that owns it.

Run as a program, it prints them as assignments for a shell script:

    eval "$(python3 packaging/facts.py)"

The environment says where the programs are, for which machine, and where packages go:
SMALT_BIN_DIR (target/release), SMALT_TARGET (this machine's), PACKAGES_DIR (build/packages).
"""

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# The programs that a package holds, and the names under which the emulator also starts.
PROGRAMS = {"smalt": "emulator", "smalt-sweeper": "sweeper", "smalt-listener": "listener"}
AZURITE_NAMES = ["azurite", "azurite-blob", "azurite-queue", "azurite-table"]
LICENCE_FILES = ["LICENSE-APACHE", "LICENSE-MIT"]

# Every binary stays below this size, and so does every image when compressed.
SIZE_LIMIT_BYTES = 15_000_000


class Platform(NamedTuple):
    """How registries call a Rust target."""

    arch: str  # OCI and Debian
    npm: dict[str, list[str]]  # fields of package.json
    wheel: str  # the platform tag; {glibc} is the oldest version that the programs run on


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
    """The Cargo.toml of a folder."""
    return tomllib.loads((ROOT / folder / "Cargo.toml").read_text())


WORKSPACE = manifest()["workspace"]["package"]
VERSION = WORKSPACE["version"]
LICENCE = WORKSPACE["license"]
# Unknown until the project has a public home.
REPOSITORY = WORKSPACE.get("repository", "")


def crates() -> list[str]:
    """The crates that are published, each after those that it depends on."""
    packages = [manifest(folder)["package"] for folder in manifest()["workspace"]["members"]]
    return [package["name"] for package in packages if package.get("publish", True)]


def description(program: str = "smalt") -> str:
    """What the crate of a program says of itself."""
    return manifest(PROGRAMS[program])["package"]["description"]


def run(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, cwd=ROOT).stdout


def glibc() -> str:
    """The oldest glibc that all programs run on, as a wheel's tag writes it: `2_34`."""
    found = [(2, 17)]
    for program in PROGRAMS:
        symbols = run("readelf", "--version-info", "--wide", str(BIN / program))
        found += [(int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols)]
    return "{}_{}".format(*max(found))


BIN = (ROOT / os.environ.get("SMALT_BIN_DIR", "target/release")).resolve()
OUT = (ROOT / os.environ.get("PACKAGES_DIR", "build/packages")).resolve()
TARGET = os.environ.get("SMALT_TARGET") or re.findall(r"host: (\S+)", run("rustc", "-vV"))[0]
PLATFORM = PLATFORMS[TARGET]
# Packages carry the commit's time, so that the same commit gives the same bytes.
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
