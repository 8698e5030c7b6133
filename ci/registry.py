"""Lays the built packages out as their registries do, for a static file server.

    registry.py FOLDER URL    URL is the address of the server of FOLDER

npm uses URL as its registry, pip and uv use URL/simple/ as their index.
"""

import hashlib
import json
import shutil
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "packaging"))
import facts  # noqa: E402


def npm(folder, url, archive):
    """Writes the document of a package, and its file at the path that the npm registry uses."""
    with tarfile.open(archive) as packed:
        manifest = json.load(packed.extractfile("package/package.json"))
    name, version = manifest["name"], manifest["version"]
    file = f"{name}/-/{name.rpartition('/')[2]}-{version}.tgz"
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(archive, folder / file)
    digest = hashlib.sha1(archive.read_bytes()).hexdigest()
    manifest["dist"] = {"tarball": f"{url}/{file}", "shasum": digest}
    document = {
        "name": name,
        "dist-tags": {"latest": version},
        "versions": {version: manifest},
    }
    (folder / name / "index.html").write_text(json.dumps(document))


def main(folder, url):
    for archive in (facts.OUT / "npm").glob("*.tgz"):
        npm(Path(folder), url, archive)
    wheels = Path(folder) / "simple" / "smalt"
    wheels.mkdir(parents=True, exist_ok=True)
    for wheel in (facts.OUT / "pypi").glob("*.whl"):
        shutil.copy(wheel, wheels)


main(*sys.argv[1:])
