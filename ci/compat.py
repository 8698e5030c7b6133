"""Creates the original design's configuration for compat.sh, and prints it after the sweep.

    compat.py create    containers, blobs, and the state document with SAS URIs in it; prints the
                        document's own URL with a SAS
    compat.py show URL  the remaining blobs, and the containers of the document at this URL
"""

import os
import sys
import urllib.request
import xml.etree.ElementTree as ElementTree
from datetime import datetime, timedelta, timezone
from xml.sax.saxutils import escape

from azure.storage.blob import (
    BlobSasPermissions,
    BlobServiceClient,
    ContainerSasPermissions,
    generate_blob_sas,
    generate_container_sas,
)

SERVICE = BlobServiceClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"])
NOW = datetime.now(timezone.utc)
DUE = {"TimeToLive": (NOW - timedelta(hours=1)).isoformat()}
STATE = SERVICE.get_blob_client("settings", "TimeToLiveBlobs")

DOCUMENT = """<?xml version="1.0" encoding="utf-8" ?>
<Containers timestamp="11/21/2026 9:00:00 AM" purged="12">
  <!-- sales keeps its dead blobs -->
  <Container name="sales" status="Init" prefix="" uri="{events}" token="" />
  <Container name="logs" status="Init" prefix="app/" uri="{logs}" />
  <Container name="off" status="Off" prefix="" uri="{paused}" token="" />
</Containers>
"""


def uri(name):
    """Returns the container's URL with a SAS, with escaped ampersands for an XML attribute."""
    container = SERVICE.get_container_client(name)
    sas = generate_container_sas(
        container.account_name,
        name,
        account_key=SERVICE.credential.account_key,
        permission=ContainerSasPermissions(read=True, delete=True, list=True),
        expiry=NOW + timedelta(hours=1),
    )
    return escape(f"{container.url}?{sas}")


def create():
    for name in ["settings", "events", "logs", "paused", "dbc"]:
        SERVICE.create_container(name)
    events = SERVICE.get_container_client("events")
    events.upload_blob("gone", b"1", metadata=DUE)
    events.upload_blob("dead", b"2", metadata={**DUE, "DeadBlobContainer": "dbc/deleteme/"})
    events.upload_blob("later", b"3", metadata={"TimeToLive": (NOW + timedelta(1)).isoformat()})
    events.upload_blob("unmarked", b"4")
    # The sweep replaces it: the original overwrites.
    SERVICE.get_blob_client("dbc", "deleteme/dead").upload_blob(b"old", metadata={"Old": "1"})
    SERVICE.get_blob_client("paused", "due").upload_blob(b"5", metadata=DUE)
    logs = SERVICE.get_container_client("logs")
    logs.upload_blob("other", b"6", metadata=DUE)
    for at in range(250):
        logs.upload_blob(f"app/{at:04}", b"7", metadata=DUE)
    names = {"events", "logs", "paused"}
    STATE.upload_blob(DOCUMENT.format(**{name: uri(name) for name in names}))
    sas = generate_blob_sas(
        STATE.account_name,
        STATE.container_name,
        STATE.blob_name,
        account_key=SERVICE.credential.account_key,
        permission=BlobSasPermissions(read=True, write=True, delete=True),
        expiry=NOW + timedelta(hours=1),
    )
    print(f"{STATE.url}?{sas}")


def show(url):
    for name in ["events", "logs", "paused", "dbc"]:
        container = SERVICE.get_container_client(name)
        for blob in container.list_blobs(include=["metadata"]):
            body = container.download_blob(blob.name).readall().decode()
            print(name, blob.name, body, *sorted(set(blob.metadata or {}) & {"Old"}))
    # A plain GET, as a browser sends it.
    with urllib.request.urlopen(url) as shown:
        print(shown.headers["Content-Type"], shown.headers["Content-Disposition"])
        text = shown.read().decode()
    document = ElementTree.fromstring(text)
    for container in document:
        print(container.get("name"), container.get("status"), "sig=" in container.get("uri"))
    swept = datetime.fromisoformat(document.get("timestamp"))
    print(NOW - swept < timedelta(minutes=5), document.get("purged"))
    print("&amp;" in text, "sales keeps its dead blobs" in text)


{"create": create, "show": show}[sys.argv[1]](*sys.argv[2:])
