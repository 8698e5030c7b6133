"""Creates and prints the content of an Azurite data directory, through Microsoft's SDKs.

    azurite_data.py fill CONNECTION    creates one of everything that Azurite stores
    azurite_data.py tell CONNECTION    prints everything as JSON, for a comparison

ci/azurite_import.sh compares the output of Azurite and smalt for the same directory. `tell` omits
known differences, where smalt answers as Azure does and Azurite does not: the order of a blob and its snapshots, leases of
snapshots, elements without a value, adjacent page ranges, zeros at the end of a time.
"""

import base64
import datetime
import json
import re
import sys
import uuid

from azure.core.exceptions import HttpResponseError
from azure.data.tables import EdmType, EntityProperty, TableAccessPolicy, TableServiceClient
from azure.storage.blob import (
    AccessPolicy,
    BlobBlock,
    BlobServiceClient,
    ContentSettings,
    CorsRule,
    PublicAccess,
    StandardBlobTier,
)
from azure.storage.queue import AccessPolicy as QueuePolicy
from azure.storage.queue import QueueServiceClient

# Larger than the payloads that smalt keeps in its records, and not a multiple of a page.
LARGE = bytes(i * 7 % 251 for i in range(200_001))


# Times of stored access policies.
WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)


def block_id(number):
    return f"block-{number:03}"


def fill_blobs(service):
    service.set_service_properties(
        cors=[CorsRule(["https://example.com"], ["GET", "PUT"], allowed_headers=["x-ms-meta-*"])]
    )
    plain = service.create_container("plain", metadata={"Owner": "test", "b": "2"})
    service.create_container("open", public_access=PublicAccess.CONTAINER)
    policy = AccessPolicy("rl", WHEN + datetime.timedelta(days=1), WHEN)
    service.create_container("empty").set_container_access_policy({"reader": policy})
    leased = service.create_container("leased")
    leased.acquire_lease(lease_duration=-1, lease_id="11111111-1111-1111-1111-111111111111")

    settings = ContentSettings("text/plain", "aes128gcm", "en", "attachment", "no-store")
    plain.upload_blob("a/text.txt", b"hello", metadata={"Kind": "text"}, content_settings=settings)
    plain.upload_blob("zero", b"")
    plain.upload_blob("large", LARGE)
    plain.upload_blob("päth/with spaces & more?.txt", b"name")
    tagged = plain.get_blob_client("tagged")
    tagged.upload_blob(b"tagged", tags={"colour": "red", "size": "10"})
    plain.upload_blob("cool", b"cool", standard_blob_tier=StandardBlobTier.COOL)
    plain.upload_blob("archived", b"archived").set_standard_blob_tier(StandardBlobTier.ARCHIVE)

    blocks = plain.get_blob_client("blocks")
    for number in range(3):
        blocks.stage_block(block_id(number), LARGE[: 20_000 * number + 5])
    blocks.commit_block_list([BlobBlock(block_id(n)) for n in (2, 0, 1)], metadata={"n": "3"})
    blocks.stage_block(block_id(9), b"not committed")
    staged = plain.get_blob_client("staged-only")
    staged.stage_block(block_id(1), b"first")
    staged.stage_block(block_id(2), LARGE)

    log = plain.get_blob_client("append")
    log.create_append_blob(metadata={"kind": "log"})
    for piece in (b"one,", LARGE[:30_000], b"three"):
        log.append_block(piece)
    sealed = plain.get_blob_client("sealed")
    sealed.create_append_blob()
    sealed.append_block(b"done")

    pages = plain.get_blob_client("pages")
    pages.create_page_blob(1 << 20, sequence_number=7)
    pages.upload_page(b"p" * 1024, 512, 1024)
    pages.upload_page(b"q" * 65536, 131072, 65536)
    pages.clear_page(131072 + 512, 1024)
    before = pages.create_snapshot()
    pages.upload_page(b"r" * 512, 0, 512)
    assert before["snapshot"]

    shot = plain.get_blob_client("shot")
    shot.upload_blob(b"first", metadata={"v": "1"})
    shot.create_snapshot()
    shot.upload_blob(LARGE[:40_000], overwrite=True, metadata={"v": "2"})
    shot.create_snapshot(metadata={"own": "yes"})
    shot.upload_blob(b"third", overwrite=True)

    held = plain.get_blob_client("held")
    held.upload_blob(b"held")
    held.acquire_lease(lease_duration=-1, lease_id="22222222-2222-2222-2222-222222222222")
    broken = plain.get_blob_client("broken")
    broken.upload_blob(b"broken")
    broken.acquire_lease(lease_duration=-1).break_lease(0)
    copy = plain.get_blob_client("copied")
    copy.start_copy_from_url(plain.get_blob_client("a/text.txt").url)


def fill_queues(service):
    service.set_service_properties(cors=[CorsRule(["*"], ["GET"])])
    queue = service.create_queue("work", metadata={"team": "a"})
    queue.send_message("plain text")
    queue.send_message("x" * 40_000)
    queue.send_message("<xml & 'more'>")
    queue.send_message("later", visibility_timeout=3000)
    queue.send_message("for ever", time_to_live=-1)
    queue.receive_message(visibility_timeout=3000)
    taken = queue.receive_message(visibility_timeout=3000)
    queue.update_message(taken, content="changed", visibility_timeout=0)
    policy = QueuePolicy("ra", WHEN + datetime.timedelta(days=1), WHEN)
    service.create_queue("idle").set_queue_access_policy({"worker": policy})


def fill_tables(service):
    policy = TableAccessPolicy(
        permission="r", start=WHEN, expiry=WHEN + datetime.timedelta(days=1)
    )
    service.create_table("Empty").set_table_access_policy({"reader": policy})
    table = service.create_table("Things")
    table.create_entity(
        {
            "PartitionKey": "all",
            "RowKey": "types",
            "text": "täxt 'quoted'",
            "empty": "",
            "small": 7,
            "large": EntityProperty(2**53 + 1, EdmType.INT64),
            "float": 1.5,
            "whole": 2.0,
            "nan": float("nan"),
            "yes": True,
            "no": False,
            "id": uuid.UUID("9f2c4b1e-8a53-4d36-a1f2-5f0d0e6f7a11"),
            "when": datetime.datetime(2024, 2, 29, 12, 30, 15, 123456, datetime.timezone.utc),
            "bytes": bytes(range(256)),
        }
    )
    for number in range(3):
        row = f"row {number}'é"
        table.create_entity({"PartitionKey": "many", "RowKey": row, "number": number})
    table.create_entity({"PartitionKey": "", "RowKey": "", "keys": "empty"})
    table.update_entity({"PartitionKey": "many", "RowKey": "row 1'é", "more": "merged"})


def told(value):
    if isinstance(value, (bytes, bytearray)):
        return {"base64": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): told(inner) for key, inner in sorted(value.items(), key=str)}
    if isinstance(value, (list, tuple)):
        return [told(inner) for inner in value]
    if isinstance(value, str):
        return value.replace(".0000000Z", "Z")
    if isinstance(value, (int, float, bool, type(None))):
        return repr(value) if isinstance(value, float) else value
    return told(vars(value)) if hasattr(value, "__dict__") else str(value)


def tell_properties(service):
    """Returns the properties that `fill` set: Azurite has its own defaults for logging and metrics."""
    properties = service.get_service_properties()
    return {name: properties.get(name) for name in ("cors", "delete_retention_policy", "static_website")}


def tell_ranges(blob):
    merged = []
    for page in blob.list_page_ranges():
        if merged and merged[-1][1] + 1 == page["start"]:
            merged[-1][1] = page["end"]
        else:
            merged.append([page["start"], page["end"]])
    return merged


def tell_blob(container, listed):
    blob = container.get_blob_client(listed.name, snapshot=listed.snapshot)
    properties = blob.get_blob_properties()
    one = {
        "name": listed.name,
        "snapshot": listed.snapshot,
        "type": properties.blob_type,
        "size": properties.size,
        "etag": properties.etag,
        "listed_etag": listed.etag.strip('"'),
        "last_modified": properties.last_modified,
        "created": properties.creation_time,
        "metadata": properties.metadata,
        "listed_metadata": listed.metadata or {},
        "settings": properties.content_settings,
        "listed_settings": listed.content_settings,
        "lease": None if listed.snapshot else properties.lease,
        "tier": properties.blob_tier,
        "tier_inferred": bool(properties.blob_tier_inferred),
        "copy": (properties.copy.id, properties.copy.status, properties.copy.progress),
        "copied": properties.copy.completion_time,
        "sequence": properties.page_blob_sequence_number,
        "blocks": properties.append_blob_committed_block_count,
    }
    kind = properties.blob_type
    if properties.blob_tier != "Archive":
        one["content"] = blob.download_blob().readall()
    if kind == "BlockBlob":
        one["tags"] = blob.get_blob_tags()
        one["block_list"] = blob.get_block_list("all")
    if kind == "PageBlob":
        one["ranges"] = tell_ranges(blob)
    return one


def tell_blobs(service):
    said = {"properties": tell_properties(service), "containers": []}
    for listed in service.list_containers(include_metadata=True):
        container = service.get_container_client(listed.name)
        properties = container.get_container_properties()
        include = ["metadata", "snapshots", "uncommittedblobs", "tags"]
        names = sorted(container.list_blobs(include=include), key=lambda b: (b.name, b.snapshot or ""))
        blobs = []
        for one in names:
            if one.size is None or one.etag is None:
                blocks = container.get_blob_client(one.name).get_block_list("all")
                blobs.append({"name": one.name, "uncommitted": blocks})
            else:
                try:
                    blobs.append(tell_blob(container, one))
                except HttpResponseError as error:
                    if error.status_code != 404:
                        raise
                    # The blob has only uncommitted blocks.
                    blocks = container.get_blob_client(one.name).get_block_list("all")
                    blobs.append({"name": one.name, "uncommitted": blocks})
        said["containers"].append(
            {
                "name": listed.name,
                "etag": properties.etag,
                "last_modified": properties.last_modified,
                "metadata": properties.metadata,
                "public": properties.public_access,
                "lease": properties.lease,
                "policy": container.get_container_access_policy(),
                "blobs": blobs,
            }
        )
    return said


def tell_queues(service):
    said = {"properties": tell_properties(service), "queues": []}
    for listed in service.list_queues(include_metadata=True):
        queue = service.get_queue_client(listed.name)
        properties = queue.get_queue_properties()
        messages = [
            (m.id, m.content, m.inserted_on, m.expires_on, m.dequeue_count)
            for m in queue.peek_messages(32)
        ]
        said["queues"].append(
            {
                "name": listed.name,
                "metadata": properties.metadata,
                "count": properties.approximate_message_count,
                "policy": queue.get_queue_access_policy(),
                "visible": messages,
            }
        )
    return said


def tell_tables(service):
    said = []
    for listed in service.list_tables():
        table = service.get_table_client(listed.name)
        entities = []
        for entity in table.list_entities():
            values = {}
            for name, value in entity.items():
                kind = type(value).__name__
                values[name] = (kind, told(value))
            entities.append(
                {
                    "values": values,
                    # Azure omits zeros at the end of the fraction.
                    "etag": re.sub("0*Z'", "Z'", entity.metadata["etag"]),
                    "timestamp": entity.metadata["timestamp"],
                }
            )
        policy = table.get_table_access_policy()
        said.append({"name": listed.name, "entities": entities, "policy": policy})
    return said


def main():
    what, connection = sys.argv[1:]
    blobs = BlobServiceClient.from_connection_string(connection)
    queues = QueueServiceClient.from_connection_string(connection)
    tables = TableServiceClient.from_connection_string(connection)
    if what == "fill":
        fill_blobs(blobs)
        fill_queues(queues)
        fill_tables(tables)
    else:
        said = {"blobs": tell_blobs(blobs), "queues": tell_queues(queues), "tables": tell_tables(tables)}
        print(json.dumps(told(said), indent=1, sort_keys=True))


main()
