"""Uses the Blob service with Microsoft's Python SDK, as a new user would.

    python python_sdk.py URL ACCOUNT KEY

Every function is a test with a container of its own; the last line has the counts.
"""

import asyncio
import datetime
import io
import os
import sys
import traceback
import urllib.error
import urllib.request
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    AccountSasPermissions,
    AccessPolicy,
    BlobBlock,
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    ContentSettings,
    ResourceTypes,
    StandardBlobTier,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)
from azure.storage.blob.aio import BlobServiceClient as AsyncBlobServiceClient

URL, ACCOUNT, KEY = sys.argv[1:]
MIB = 1 << 20
OPTIONS = {
    "credential": {"account_name": ACCOUNT, "account_key": KEY},
    "max_single_put_size": 4 * MIB,
    "max_block_size": 4 * MIB,
    "max_single_get_size": 8 * MIB,
    "max_chunk_get_size": 4 * MIB,
}
SERVICE = BlobServiceClient(URL, **OPTIONS)
HOUR = datetime.timedelta(hours=1)


def in_an_hour():
    return datetime.datetime.now(datetime.timezone.utc) + HOUR


def refused(code, call, *args, **kwargs):
    """Expects the call to fail with this code, or status if there is no body."""
    try:
        call(*args, **kwargs)
    except HttpResponseError as error:
        assert code in (error.error_code, error.status_code), f"{code}: {error}"
        return
    raise AssertionError(f"did not fail with {code}")


def fetch(url):
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        return error.code


def signed(blob, **options):
    """Returns the URL of a blob with a SAS of these options."""
    query = generate_blob_sas(
        ACCOUNT, blob.container_name, blob.blob_name, account_key=KEY, **options
    )
    return f"{blob.url}?{query}"


def large_blobs(container):
    data, blob = os.urandom(40 * MIB), container.get_blob_client("large")
    blob.upload_blob(data, max_concurrency=4, metadata={"a": "b"}, tags={"k": "v"})
    assert blob.download_blob(max_concurrency=4).readall() == data
    part = blob.download_blob(offset=10_000_000, length=5_000_001).readall()
    assert part == data[10_000_000:15_000_001]
    properties = blob.get_blob_properties()
    assert (properties.size, properties.metadata) == (len(data), {"a": "b"})
    refused("BlobAlreadyExists", blob.upload_blob, b"x")
    blob.upload_blob(io.BytesIO(data[: 9 * MIB]), overwrite=True)
    assert blob.download_blob(validate_content=True).readall() == data[: 9 * MIB]
    pieces = (data[at : at + 1000] for at in range(0, 100_000, 1000))
    blob.upload_blob(pieces, overwrite=True, validate_content=True)
    assert blob.download_blob().readall() == data[:100_000]


def blocks(container):
    blob, ids = container.get_blob_client("b"), [f"{at:03}" for at in range(5)]
    for block in ids:
        blob.stage_block(block, block.encode(), validate_content=True)
    assert [len(part) for part in blob.get_block_list("all")] == [0, 5]
    assert [b.name for b in container.list_blobs(include=["uncommittedblobs"])] == ["b"]
    blob.commit_block_list([BlobBlock(block) for block in reversed(ids)])
    assert blob.download_blob().readall() == b"004003002001000"
    refused("InvalidBlockList", blob.commit_block_list, [BlobBlock("zzz")])
    copy = container.get_blob_client("c")
    copy.stage_block_from_url("000", signed(blob, permission="r", expiry=in_an_hour()), 0, 6)
    copy.commit_block_list([BlobBlock("000")])
    assert copy.download_blob().readall() == b"004003"


def leases(container):
    blob = container.get_blob_client("b")
    blob.upload_blob(b"1")
    lease = blob.acquire_lease(15)
    refused("LeaseIdMissing", blob.upload_blob, b"2", overwrite=True)
    blob.upload_blob(b"2", overwrite=True, lease=lease)
    lease.renew()
    lease.change(str(uuid.uuid4()))
    refused("LeaseAlreadyPresent", blob.acquire_lease, -1)
    lease.release()
    lease = blob.acquire_lease(-1)
    lease.break_lease(0)
    assert blob.get_blob_properties().lease.state == "broken"
    refused("LeaseIsBrokenAndCannotBeRenewed", lease.renew)


def snapshots(container):
    blob = container.get_blob_client("b")
    blob.upload_blob(b"1")
    time = blob.create_snapshot()["snapshot"]
    blob.upload_blob(b"2", overwrite=True)
    assert container.get_blob_client("b", snapshot=time).download_blob().readall() == b"1"
    refused("SnapshotsPresent", blob.delete_blob)
    blob.delete_blob(delete_snapshots="include")
    assert not list(container.list_blobs(include="snapshots"))


def conditions(container):
    blob = container.get_blob_client("b")
    known = {"etag": blob.upload_blob(b"1")["etag"]}
    same, other = MatchConditions.IfNotModified, MatchConditions.IfModified
    blob.set_blob_metadata({"a": "1"}, match_condition=same, **known)
    refused("ConditionNotMet", blob.set_blob_metadata, {}, match_condition=same, **known)
    known = {"etag": blob.get_blob_properties().etag}
    refused(304, blob.download_blob, match_condition=other, **known)
    blob.set_blob_tags({"a": "1"})
    blob.download_blob(if_tags_match_condition="a='1'")
    refused("ConditionNotMet", blob.download_blob, if_tags_match_condition="a='2'")


def signatures(container):
    blob = container.get_blob_client("d/a b+ü.txt")
    blob.upload_blob(b"hello")
    until = {"expiry": in_an_hour()}
    assert fetch(signed(blob, permission="r", **until)) == b"hello"
    query = generate_container_sas(
        ACCOUNT, container.container_name, account_key=KEY, permission="rl", **until
    )
    listed = ContainerClient.from_container_url(f"{container.url}?{query}").list_blobs()
    assert [item.name for item in listed] == [blob.blob_name]
    reader = BlobClient.from_blob_url(f"{blob.url}?{query}")
    refused("AuthorizationPermissionMismatch", reader.delete_blob)
    may_read = AccountSasPermissions(read=True)
    query = generate_account_sas(ACCOUNT, KEY, ResourceTypes(object=True), may_read, **until)
    assert fetch(f"{blob.url}?{query}") == b"hello"
    assert fetch(f"{container.url}?restype=container&comp=list&{query}") == 403
    container.set_container_access_policy({"p": AccessPolicy(permission="r", **until)})
    by_policy = signed(blob, policy_id="p")
    assert fetch(by_policy) == b"hello"
    container.set_container_access_policy({}, public_access="blob")
    assert (fetch(by_policy), fetch(blob.url)) == (403, b"hello")


def copies(container):
    blob, copy = container.get_blob_client("b"), container.get_blob_client("c")
    blob.upload_blob(b"1" * 1000, metadata={"m": "1"})
    copy.start_copy_from_url(blob.url)
    properties = copy.get_blob_properties()
    assert (properties.copy.status, properties.metadata) == ("success", {"m": "1"})
    source = signed(blob, permission="r", expiry=in_an_hour())
    copy.start_copy_from_url(source, requires_sync=True, metadata={"n": "2"})
    assert copy.get_blob_properties().metadata == {"n": "2"}
    refused("NoPendingCopyOperation", copy.abort_copy, properties.copy.id)


def tags_and_batches(container):
    for at in range(6):
        container.upload_blob(f"b{at}", b"1", tags={"at": str(at)})
    found = SERVICE.find_blobs_by_tags(f"@container='{container.container_name}' and at>='4'")
    assert [item.name for item in found] == ["b4", "b5"]
    tiers = container.set_standard_blob_tier_blobs(StandardBlobTier.COOL, "b0", "b1")
    assert [answer.status_code for answer in tiers] == [200, 200]
    gone = container.delete_blobs("b0", "none", raise_on_any_failure=False)
    assert [answer.status_code for answer in gone] == [202, 404]


def pages(container):
    blob = container.get_blob_client("p")
    blob.create_page_blob(4096, sequence_number=3)
    blob.upload_page(b"a" * 512, 0, 512, validate_content=True)
    blob.upload_page(b"b" * 1024, 2048, 1024)
    ranges = [(part.start, part.end) for part in blob.list_page_ranges()]
    assert ranges == [(0, 511), (2048, 3071)], ranges
    before = blob.create_snapshot()
    blob.clear_page(0, 512)
    (change,) = blob.list_page_ranges(previous_snapshot=before)
    assert (change.start, change.end, change.cleared) == (0, 511, True)
    blob.resize_blob(8192)
    assert blob.download_blob().readall() == b"\0" * 2048 + b"b" * 1024 + b"\0" * 5120


def appends(container):
    blob = container.get_blob_client("a")
    blob.create_append_blob()
    blob.append_block(b"1", validate_content=True)
    blob.append_block(b"2", appendpos_condition=1)
    wrong = {"appendpos_condition": 1}
    refused("AppendPositionConditionNotMet", blob.append_block, b"3", **wrong)
    data = os.urandom(9 * MIB)
    large = container.get_blob_client("l")
    large.upload_blob(data, blob_type="AppendBlob")
    assert large.download_blob().readall() == data
    blob.seal_append_blob()
    refused("BlobIsSealed", blob.append_block, b"3")


def listings(container):
    for at in range(30):
        container.upload_blob(f"d{at % 3}/e/{at:02}&<>", b"")
    assert len(list(container.list_blobs(results_per_page=7).by_page())) == 5
    assert [item.name for item in container.walk_blobs()] == ["d0/", "d1/", "d2/"]
    names = [item.name for item in container.list_blobs(name_starts_with="d1/e/0")]
    assert names == ["d1/e/01&<>", "d1/e/04&<>", "d1/e/07&<>"]


def names(container):
    given = ["a b", "ü", "日本", "a+b", "a%20b", "a%", "q?x=1", "#h", "a//b", "/lead"]
    given += ["trail/", ".hidden", "~!@$&*()_=:;',", "é" * 100]
    for name in given:
        container.upload_blob(name, name.encode())
        assert container.download_blob(name).readall() == name.encode(), name
    assert sorted(item.name for item in container.list_blobs()) == sorted(given)


def tiers(container):
    blob = container.get_blob_client("t")
    blob.upload_blob(b"1", standard_blob_tier=StandardBlobTier.COOL)
    blob.set_standard_blob_tier("Archive")
    refused("BlobArchived", blob.download_blob)
    blob.set_standard_blob_tier("Hot", rehydrate_priority="High")
    status = blob.get_blob_properties().archive_status
    assert status == "rehydrate-pending-to-hot", status


def properties(container):
    blob = container.get_blob_client("b")
    blob.upload_blob(b"a", metadata={"Upper": "V", "l": "x y"})
    assert blob.get_blob_properties().metadata == {"Upper": "V", "l": "x y"}
    blob.set_http_headers(ContentSettings(content_type="a/b", content_language="de"))
    assert blob.get_blob_properties().content_settings.content_language == "de"
    assert not container.get_blob_client("none").exists()
    refused("BlobNotFound", container.get_blob_client("none").get_blob_properties)


def without_waiting(container):
    async def run():
        async with AsyncBlobServiceClient(URL, **OPTIONS) as service:
            own = service.get_container_client(container.container_name)
            data = os.urandom(20 * MIB)
            await own.upload_blob("x", data, max_concurrency=8)
            stream = await own.download_blob("x", max_concurrency=8)
            assert await stream.readall() == data
            await asyncio.gather(*(own.upload_blob(f"n{at}", b"x") for at in range(100)))
            listed = [item.name async for item in own.list_blobs(results_per_page=13)]
            assert len(listed) == 101

    asyncio.run(run())


TESTS = [large_blobs, blocks, leases, snapshots, conditions, signatures, copies, tags_and_batches]
TESTS += [pages, appends, listings, names, tiers, properties, without_waiting]


def main():
    failed = 0
    for test in TESTS:
        container = SERVICE.create_container("suite" + uuid.uuid4().hex)
        try:
            test(container)
        except Exception:  # Every test runs, even after a failure.
            failed += 1
            print("FAILED", test.__name__, traceback.format_exc(), sep="\n")
    print(f"{len(TESTS) - failed} passed, {failed} failed")


main()
