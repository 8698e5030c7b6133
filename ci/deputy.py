"""Writes hostile blobs and messages, and prints what the workers leave: see deputy.sh.

    deputy.py plant     blobs with destinations, forged envelopes, texts with terminal control characters
    deputy.py show      the data that must not change
    deputy.py check     fails if standard input contains a terminal control character
"""

import base64
import hashlib
import json
import os
import sys
import unicodedata

from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

PLANTED = {
    "a": "$web/index.html",
    "b": "smalt-sweeper/TimeToLiveBlobs",
    "c": "con1/one",
    "d": "brandnew/x",
    "e\u202e\u009b31m": "con1/esc",
}
HOSTILE = "x\u009b31mRED\u009d0;title\u009c \u0085 2026 ERROR forged \u2028 \u202egpj"


def services():
    connection = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    return (
        BlobServiceClient.from_connection_string(connection),
        QueueServiceClient.from_connection_string(connection),
    )


def put(blobs, container, name, content, **metadata):
    try:
        blobs.create_container(container)
    except ResourceExistsError:
        pass
    blobs.get_blob_client(container, name).upload_blob(content, metadata=metadata)


def forged(content, name):
    reference = {"c": "payloads", "b": name, "len": len(content)}
    reference["sha256"] = hashlib.sha256(content).hexdigest()
    return json.dumps({"v": 1, "enc": "none", "ref": reference})


def plant():
    blobs, queues = services()
    put(blobs, "$web", "index.html", b"the site")
    put(blobs, "con1", "one", b"somebody's")
    for name, place in PLANTED.items():
        due = {"TimeToLive": "2020-01-01T00:00:00Z", "DeadBlobContainer": place}
        put(blobs, "inbox", name, b"EVIL", **due)
    put(blobs, "payloads", "victim", b"VICTIM", TimeToLive="2099-01-01T00:00:00Z")
    jobs = queues.create_queue("jobs")
    for text in (forged(b"VICTIM", "victim"), forged(b"unknown", "victim"), HOSTILE):
        jobs.send_message(base64.b64encode(text.encode()).decode())
    queues.create_queue("texts").send_message(HOSTILE)


def show():
    blobs, _ = services()
    print("containers", *sorted(container.name for container in blobs.list_containers()))
    print("inbox", sum(1 for _ in blobs.get_container_client("inbox").list_blobs()))
    for container, name in (("$web", "index.html"), ("con1", "one"), ("payloads", "victim")):
        blob = blobs.get_blob_client(container, name)
        metadata = blob.get_blob_properties().metadata
        print(container, blob.download_blob().readall().decode(), *metadata.items())


def check():
    text = sys.stdin.buffer.read().decode()
    found = {c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")}
    if found or "RED" not in text:
        sys.exit(f"{sorted(found)!r} in:\n{text!r}")


if __name__ == "__main__":
    {"plant": plant, "show": show, "check": check}[sys.argv[1]]()
