"""Builds the npm packages: `smalt` for all platforms, and one with the programs of this platform.

    python3 packaging/npm.py

`smalt` depends optionally on the packages of all platforms, and npm installs the one that matches.
There is no install script. The package of a platform has the name of its Rust target;
packaging/install.sh, the Homebrew formula and cargo-binstall download the same file.
"""

import json
import shutil
import subprocess

import facts

OUT = facts.OUT / "npm"
# npm/lib/program.js, install.sh, homebrew.py and the binstall metadata use the same scope.
SCOPE = "@smalt"


def write(folder, document):
    (folder / "package.json").write_text(json.dumps(document, indent=2) + "\n")
    for name in facts.LICENCE_FILES:
        shutil.copy(facts.ROOT / name, folder)


def common():
    known = {"version": facts.VERSION, "license": facts.LICENCE}
    if facts.REPOSITORY:
        known["repository"] = facts.REPOSITORY
    return known


def platform():
    """Stages the package of the target that the programs were built for."""
    folder = OUT / facts.TARGET
    (folder / "bin").mkdir(parents=True)
    for program in facts.PROGRAMS:
        shutil.copy(facts.BIN / program, folder / "bin")
    (folder / "README.md").write_text(
        f"The programs of [smalt](https://www.npmjs.com/package/smalt) for {facts.TARGET}.\n"
    )
    write(
        folder,
        {
            "name": f"{SCOPE}/{facts.TARGET}",
            "description": f"The programs of smalt for {facts.TARGET}.",
            **common(),
            **facts.PLATFORM.npm,
            "preferUnplugged": True,
        },
    )
    return folder


def types(folder):
    """Type-checks the sources and writes their declarations beside them."""
    tools = facts.OUT.parent / "packaging-tools/npm"
    wanted = facts.ROOT / "packaging/npm/package.json"
    installed = tools / "package.json"
    if not installed.exists() or installed.read_bytes() != wanted.read_bytes():
        tools.mkdir(parents=True, exist_ok=True)
        shutil.copy(wanted, tools)
        subprocess.run(["npm", "install", "--silent", "--prefix", str(tools)], check=True)
    modules = tools / "node_modules"
    subprocess.run(
        ["node", modules / "typescript/bin/tsc", "--project", folder]
        + ["--typeRoots", modules / "@types"],
        check=True,
    )


def main():
    """Stages the package `smalt`: npm/ with type declarations and the facts."""
    folder = OUT / "smalt"
    shutil.copytree(
        facts.ROOT / "packaging/npm", folder, ignore=shutil.ignore_patterns("node_modules")
    )
    types(folder)
    document = json.loads((folder / "package.json").read_text())
    del document["devDependencies"]
    dependencies = {f"{SCOPE}/{target}": facts.VERSION for target in facts.PLATFORMS}
    write(
        folder,
        document
        | {"description": facts.description()}
        | common()
        | {"optionalDependencies": dependencies},
    )
    return folder


def pack(folder):
    """Packs a staged package as `npm publish` would, and removes the stage."""
    subprocess.run(
        ["npm", "pack", "--silent", "--pack-destination", str(OUT)], check=True, cwd=folder
    )
    shutil.rmtree(folder)


if __name__ == "__main__":
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    pack(platform())
    pack(main())
