"""rclone, and restic with a repository that rclone keeps in a container.

    backup.py BLOB_URL ACCOUNT KEY DIRECTORY

Both programs are found in PATH. Debian's rclone accepts a path-style address only with a SAS.
"""

import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import steps
from sas import account_sas
from steps import step

URL, ACCOUNT, KEY, DIRECTORY = sys.argv[1:]


def run(*command):
    return steps.run(DIRECTORY, *command)


def same(left, right):
    return steps.same(f"{DIRECTORY}/{left}", f"{DIRECTORY}/{right}")


@step
def rclone_sync():
    run("rclone", "mkdir", "emu:backup")
    run("rclone", "sync", "--azureblob-chunk-size", "4M", "source", "emu:backup/files")
    run("rclone", "check", "--download", "source", "emu:backup/files")


@step
def rclone_copies():
    run("rclone", "copy", "emu:backup/files", "back")
    assert same("source", "back")
    run("rclone", "move", "emu:backup/files", "emu:backup/moved")
    assert len(run("rclone", "lsf", "-R", "--files-only", "emu:backup").splitlines()) == 4
    run("rclone", "purge", "emu:backup/moved")
    assert run("rclone", "lsf", "-R", "emu:backup") == ""


@step
def restic_backup():
    run("restic", "init")
    run("restic", "backup", "source")
    with open(f"{DIRECTORY}/source/new", "w", encoding="utf-8") as file:
        file.write("more")
    run("restic", "backup", "source")
    run("restic", "check", "--read-data")


@step
def restic_restore():
    run("restic", "restore", "latest", "--target", "restored")
    assert same("source", "restored/source")
    run("restic", "forget", "--keep-last", "1", "--prune")
    run("restic", "check")


def prepare():
    os.makedirs(f"{DIRECTORY}/source/a/b")
    for name, content in (
        ("a/big", os.urandom(3_000_000)),
        ("a/b/sp ace+%.txt", b"hi"),
        ("empty", b""),
        ("blocks", os.urandom(30_000_000)),
    ):
        with open(f"{DIRECTORY}/source/{name}", "wb") as file:
            file.write(content)
    with open(f"{DIRECTORY}/rclone.conf", "w", encoding="utf-8") as file:
        file.write(f"[emu]\ntype = azureblob\nsas_url = {URL}/{ACCOUNT}?{account_sas(account=ACCOUNT, key=KEY)}\n")
    os.environ |= {
        "RCLONE_CONFIG": f"{DIRECTORY}/rclone.conf",
        "RESTIC_REPOSITORY": "rclone:emu:backup/repository",
        "RESTIC_PASSWORD": "secret",
        "RESTIC_CACHE_DIR": f"{DIRECTORY}/cache",
    }


if __name__ == "__main__":
    prepare()
    steps.play()
