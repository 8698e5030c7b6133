"""azcopy with Data Lake Storage: trees of files up, down and away, and their access control lists.

    azcopy.py BLOB_URL ACCOUNT KEY DIRECTORY

azcopy is found in PATH. It accepts a path-style address only with a SAS. It neither renames nor
sets access control lists, so that requests of this script do it between its commands.
"""

import os
import pathlib
import sys
import urllib.request

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import steps
from sas import account_sas
from steps import step

BLOB_URL, ACCOUNT, KEY, DIRECTORY = sys.argv[1:]
SYSTEM = "lake"
LOCAL = f"{DIRECTORY}/source"
LIST = "user::rwx,user:ada:r-x,group::r--,mask::r-x,other::---"
FILES = {"a": 4, "empty": 0, "sub/sp ace+ü": 2, "sub/deep/big": 9_000_000}


def url(path="", query=""):
    return f"{BLOB_URL}/{ACCOUNT}/{SYSTEM}{path}?{query}{account_sas(account=ACCOUNT, key=KEY)}"


def ask(method, path, query="", **headers):
    """Sends a request without a body, and returns the headers of its answer."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url(path, query), b"", headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return answer.headers


def azcopy(*arguments):
    return steps.run(DIRECTORY, "azcopy", *arguments, "--skip-version-check")


def listed(path):
    found = azcopy("list", url(path), "--location", "BlobFS").splitlines()
    names = [line.split("; ")[0].removeprefix("INFO: ") for line in found if "; Content Length" in line]
    return sorted(name for name in names if not name.endswith("/"))


@step
def uploads():
    ask("PUT", "", "restype=container&")
    azcopy("copy", f"{LOCAL}/*", url("/up"), "--recursive", "--from-to", "LocalBlobFS")
    assert listed("/up") == sorted(FILES), listed("/up")
    properties = ask("HEAD", "/up/sub/deep")
    assert properties["x-ms-resource-type"] == "directory", properties


@step
def renames():
    ask("PUT", "/moved", "mode=legacy&", x_ms_rename_source=f"/{SYSTEM}/up")
    assert listed("/moved") == sorted(FILES), listed("/moved")
    assert "up" not in listed("") and len(listed("")) == len(FILES), listed("")


@step
def access_control_lists():
    ask("PATCH", "/moved/a", "action=setAccessControl&", x_ms_acl=LIST)
    options = ("--from-to", "BlobFSBlobFS", "--preserve-permissions")
    azcopy("copy", url("/moved/a"), url("/copied"), *options)
    found = ask("HEAD", "/copied", "action=getAccessControl&")
    assert found["x-ms-acl"] == LIST, found["x-ms-acl"]


@step
def downloads():
    azcopy("copy", url("/moved"), f"{DIRECTORY}/back", "--recursive", "--from-to", "BlobFSLocal")
    assert steps.same(LOCAL, f"{DIRECTORY}/back/moved")


@step
def syncs():
    os.remove(f"{LOCAL}/sub/deep/big")
    pathlib.Path(f"{LOCAL}/new").write_text("new", encoding="utf-8")
    azcopy("sync", LOCAL, url("/moved"), "--delete-destination", "true", "--from-to", "LocalBlobFS")
    assert listed("/moved") == ["a", "empty", "new", "sub/sp ace+ü"], listed("/moved")


@step
def removes():
    azcopy("remove", url("/moved"), "--recursive", "--from-to", "BlobFSTrash")
    assert listed("") == ["copied"], listed("")


if __name__ == "__main__":
    for name, length in FILES.items():
        file = pathlib.Path(LOCAL, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(length))
    for variable in ("AZCOPY_LOG_LOCATION", "AZCOPY_JOB_PLAN_LOCATION"):
        os.environ[variable] = f"{DIRECTORY}/azcopy"
    steps.play()
