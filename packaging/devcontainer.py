"""Builds the devcontainer feature: packaging/install.sh and its metadata.

    python3 packaging/devcontainer.py

The devcontainer command line validates and packs it.
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import facts

CLI = "@devcontainers/cli@0"
OUT = facts.OUT / "devcontainer"


def build(sources: Path) -> None:
    folder = sources / "smalt"
    folder.mkdir()
    shutil.copy(facts.ROOT / "packaging/install.sh", folder)
    source = facts.ROOT / "packaging/devcontainer/devcontainer-feature.json"
    document = json.loads(source.read_text()) | {"version": facts.VERSION}
    document["options"]["version"]["default"] = facts.VERSION
    (folder / source.name).write_text(json.dumps(document, indent=2))
    shutil.rmtree(OUT, ignore_errors=True)
    subprocess.run(
        ["npx", "--yes", "--package", CLI, "devcontainer", "features", "package"]
        + [str(sources), "--output-folder", str(OUT)],
        check=True,
        stdout=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as sources:
        build(Path(sources))
