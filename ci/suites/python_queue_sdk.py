"""Uses the Queue service with Microsoft's Python SDK, as a new user would.

    python python_queue_sdk.py URL ACCOUNT KEY

Every function is a test with a queue of its own; the last line has the counts.
"""

import asyncio
import base64
import datetime
import sys
import time
import traceback
import uuid

from azure.core.exceptions import HttpResponseError
from azure.storage.queue import (
    AccessPolicy,
    AccountSasPermissions,
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    CorsRule,
    Metrics,
    QueueAnalyticsLogging,
    QueueClient,
    QueueSasPermissions,
    QueueServiceClient,
    ResourceTypes,
    RetentionPolicy,
    TextBase64DecodePolicy,
    TextBase64EncodePolicy,
    generate_account_sas,
    generate_queue_sas,
)
from azure.storage.queue.aio import QueueServiceClient as AsyncQueueServiceClient

URL, ACCOUNT, KEY = sys.argv[1:]
CREDENTIAL = {"account_name": ACCOUNT, "account_key": KEY}
SERVICE = QueueServiceClient(URL, credential=CREDENTIAL)
HOUR = datetime.timedelta(hours=1)


def in_an_hour():
    return datetime.datetime.now(datetime.timezone.utc) + HOUR


def refused(code, call, *args, **kwargs):
    """Expects the call to fail with this code."""
    try:
        result = call(*args, **kwargs)
        if hasattr(result, "__next__"):
            next(result, None)
    except HttpResponseError as error:
        assert code == error.error_code, f"{code}: {error}"
        return
    raise AssertionError(f"did not fail with {code}")


def signed(queue, **options):
    return QueueClient(URL, queue.queue_name, **options)


def messages(queue):
    sent = queue.send_message("hello", time_to_live=60)
    assert sent.id and sent.pop_receipt and sent.next_visible_on
    assert [m.content for m in queue.peek_messages()] == ["hello"]
    got = queue.receive_message(visibility_timeout=20)
    assert (got.id, got.content, got.dequeue_count) == (sent.id, "hello", 1)
    assert got.pop_receipt != sent.pop_receipt
    assert queue.receive_message() is None
    refused("PopReceiptMismatch", queue.delete_message, sent.id, sent.pop_receipt)
    queue.delete_message(got)
    refused("MessageNotFound", queue.delete_message, got)


def updates(queue):
    queue.send_message("old")
    got = queue.receive_message(visibility_timeout=30)
    new = queue.update_message(got, visibility_timeout=0, content="new")
    assert new.pop_receipt != got.pop_receipt
    again = queue.receive_message()
    assert (again.content, again.dequeue_count) == ("new", 2)
    refused("PopReceiptMismatch", queue.update_message, got, visibility_timeout=0)
    refused("OutOfRangeQueryParameterValue", queue.update_message, again, visibility_timeout=604_801)


def batches(queue):
    for number in range(40):
        queue.send_message(str(number))
    assert queue.get_queue_properties().approximate_message_count == 40
    seen = [m.content for m in queue.receive_messages(messages_per_page=32, visibility_timeout=60)]
    assert sorted(seen, key=int) == [str(number) for number in range(40)]
    assert len(queue.peek_messages(max_messages=32)) == 0


def hiding_and_expiry(queue):
    queue.send_message("late", visibility_timeout=2)
    queue.send_message("short", time_to_live=1)
    queue.send_message("endless", time_to_live=-1)
    time.sleep(1.2)
    assert [m.content for m in queue.peek_messages(max_messages=5)] == ["endless"]
    time.sleep(1.2)
    peeked = queue.peek_messages(max_messages=5)
    assert {m.content for m in peeked} == {"late", "endless"}
    assert max(m.expires_on for m in peeked).year == 9999


def encodings(queue):
    for encode, decode, content in [
        (TextBase64EncodePolicy(), TextBase64DecodePolicy(), "grüße \x01"),
        (BinaryBase64EncodePolicy(), BinaryBase64DecodePolicy(), b"\x00\xff"),
    ]:
        options = {"message_encode_policy": encode, "message_decode_policy": decode}
        client = signed(queue, credential=CREDENTIAL, **options)
        client.send_message(content)
        got = client.receive_message()
        assert got.content == content
        client.delete_message(got)
    queue.send_message("<a>&\u00fc\U0001f600")
    assert queue.receive_message().content == "<a>&\u00fc\U0001f600"
    refused("InvalidXmlDocument", queue.send_message, "a\x01b")


def sizes(queue):
    full = "x" * 65_536
    queue.send_message(full)
    assert queue.receive_message().content == full
    refused("RequestBodyTooLarge", queue.send_message, full + "x")
    raw = base64.b64encode(b"\x00" * 49_152).decode()
    assert len(raw) == 65_536
    queue.send_message(raw)


def creation(queue):
    # The client treats the 204 for an existing queue as an error.
    refused("QueueAlreadyExists", queue.create_queue)
    refused("QueueAlreadyExists", queue.create_queue, metadata={"a": "1"})
    queue.set_queue_metadata({"a": "1"})
    assert queue.get_queue_properties().metadata == {"a": "1"}
    queue.delete_queue()
    refused("QueueNotFound", queue.get_queue_properties)
    queue.create_queue()


def listings(queue):
    names = [f"{queue.queue_name}-{letter}" for letter in "abc"]
    for name in names:
        SERVICE.create_queue(name, metadata={"name": name.replace("-", "_")})
    pages = SERVICE.list_queues(f"{queue.queue_name}-", True, results_per_page=2).by_page()
    pages = [list(page) for page in pages]
    assert [len(page) for page in pages] == [2, 1]
    assert [q.name for page in pages for q in page] == names
    assert pages[0][0].metadata == {"name": names[0].replace("-", "_")}


def clearing(queue):
    for number in range(5):
        queue.send_message(str(number), visibility_timeout=number)
    queue.clear_messages()
    assert queue.get_queue_properties().approximate_message_count == 0


def policies(queue):
    policy = AccessPolicy(QueueSasPermissions(read=True), expiry=in_an_hour(), start=None)
    queue.set_queue_access_policy({"reader": policy})
    assert list(queue.get_queue_access_policy()) == ["reader"]
    sas = generate_queue_sas(ACCOUNT, queue.queue_name, KEY, policy_id="reader")
    queue.send_message("a")
    reader = signed(queue, credential=sas)
    assert [m.content for m in reader.peek_messages()] == ["a"]
    refused("AuthorizationPermissionMismatch", reader.receive_message)
    queue.set_queue_access_policy({})
    refused("AuthenticationFailed", reader.peek_messages)


def signatures(queue):
    held = queue.send_message("a", time_to_live=-1)
    calls = {
        "read": lambda client: client.peek_messages(),
        "add": lambda client: client.send_message("b"),
        "update": lambda client: client.update_message(held, visibility_timeout=0),
        "process": lambda client: client.receive_message(),
    }
    for given in ["read", "add", "process"]:
        permission = QueueSasPermissions(**{given: True})
        sas = generate_queue_sas(ACCOUNT, queue.queue_name, KEY, permission, in_an_hour())
        client = signed(queue, credential=sas)
        for needed, call in calls.items():
            if needed == given:
                call(client)
            else:
                refused("AuthorizationPermissionMismatch", call, client)
    types = ResourceTypes(service=True, container=True, object=True)
    permission = AccountSasPermissions(list=True)
    sas = generate_account_sas(ACCOUNT, KEY, types, permission, in_an_hour())
    names = [q.name for q in QueueServiceClient(URL, credential=sas).list_queues()]
    assert queue.queue_name in names


def properties(_):
    retention = RetentionPolicy(enabled=True, days=5)
    logging = QueueAnalyticsLogging(read=True, write=True, delete=True, retention_policy=retention)
    hour = Metrics(enabled=True, include_apis=True, retention_policy=retention)
    cors = [CorsRule(["http://a"], ["GET"], max_age_in_seconds=60)]
    SERVICE.set_service_properties(analytics_logging=logging, hour_metrics=hour, cors=cors)
    shown = SERVICE.get_service_properties()
    assert shown["analytics_logging"].retention_policy.days == 5
    assert shown["hour_metrics"].include_apis
    assert shown["cors"][0].allowed_origins == "http://a"
    SERVICE.set_service_properties(cors=[])
    assert SERVICE.get_service_properties()["cors"] == []


def without_waiting(queue):
    async def run():
        async with AsyncQueueServiceClient(URL, credential=CREDENTIAL) as service:
            client = service.get_queue_client(queue.queue_name)
            await asyncio.gather(*(client.send_message(str(number)) for number in range(20)))
            seen = set()
            async for message in client.receive_messages(messages_per_page=8):
                seen.add(message.content)
                await client.delete_message(message)
            assert len(seen) == 20
            assert (await client.get_queue_properties()).approximate_message_count == 0

    asyncio.run(run())


TESTS = [
    messages,
    updates,
    batches,
    hiding_and_expiry,
    encodings,
    sizes,
    creation,
    listings,
    clearing,
    policies,
    signatures,
    properties,
    without_waiting,
]


def main():
    failed = 0
    for test in TESTS:
        queue = SERVICE.create_queue(f"py-{uuid.uuid4().hex[:12]}")
        try:
            test(queue)
        except Exception:
            failed += 1
            print(f"FAILED {test.__name__}")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
