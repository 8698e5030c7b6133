"""Blobs that say when they go, and messages to work on: the first minutes with smalt.

    pip install azure-storage-blob azure-storage-queue
    smalt &
    python docs/quickstart.py create
    smalt-sweeper once --connection-string UseDevelopmentStorage=true \
        --container events --dead-allow dead
    smalt-listener once --connection-string UseDevelopmentStorage=true --queue orders --exec cat
    python docs/quickstart.py show

Any account serves: AZURE_STORAGE_CONNECTION_STRING names another one than the local emulator's.
"""

import os
import sys
from datetime import datetime, timedelta, timezone

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueClient

# The public account of local emulators.
LOCAL = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
    "QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;"
)
CONNECTION = os.environ.get("AZURE_STORAGE_CONNECTION_STRING") or LOCAL


def in_hours(hours):
    """A TimeToLive: RFC 3339 with its zone."""
    at = datetime.now(timezone.utc) + timedelta(hours=hours)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def create():
    events = BlobServiceClient.from_connection_string(CONNECTION).get_container_client("events")
    try:
        events.create_container()
    except ResourceExistsError:
        pass
    blobs = {
        # The sweeper never touches a blob without TimeToLive.
        "keep.json": {},
        # Expired: the next sweep deletes it.
        "expired.json": {"TimeToLive": in_hours(-1)},
        # Expired, with a destination: the next sweep moves it to dead/2026/archived.json.
        "archived.json": {"TimeToLive": in_hours(-1), "DeadBlobContainer": "dead/2026/"},
        # Expires later.
        "tomorrow.json": {"TimeToLive": in_hours(24)},
        # Expires a week after its last change.
        "week.json": {"TimeToLive": "P7D"},
    }
    for name, metadata in blobs.items():
        events.upload_blob(name, f'{{"name": "{name}"}}', metadata=metadata, overwrite=True)

    orders = QueueClient.from_connection_string(CONNECTION, "orders")
    try:
        orders.create_queue()
    except ResourceExistsError:
        pass
    for number in range(3):
        orders.send_message(f"order {number}")
    print(f"{len(blobs)} blobs in events, 3 messages in orders")


def show():
    service = BlobServiceClient.from_connection_string(CONNECTION)
    for container in ("events", "dead"):
        try:
            for blob in service.get_container_client(container).list_blobs(include=["metadata"]):
                # Metadata names ignore case; SDKs and services show different cases.
                metadata = {name.lower(): value for name, value in (blob.metadata or {}).items()}
                origin = metadata.get("sourceuri", "")
                print(f"{container}/{blob.name}", f"from {origin.rsplit('/', 1)[-1]}" if origin else "")
        except ResourceNotFoundError:
            pass
    orders = QueueClient.from_connection_string(CONNECTION, "orders")
    print(f"orders: {orders.get_queue_properties().approximate_message_count} messages")


if __name__ == "__main__":
    commands = {"create": create, "show": show}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]]()
