"""What ci/events.sh does with Microsoft's Python packages: subscribe, change blobs, read the queue."""

import json
import os
import queue as queues
import socket
import statistics
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from azure.core.exceptions import AzureError, ResourceExistsError
from azure.core.messaging import CloudEvent
from azure.eventgrid import EventGridEvent, SystemEventNames
from azure.storage.blob import BlobServiceClient, StandardBlobTier
from azure.storage.queue import QueueClient, TextBase64DecodePolicy

WAIT_S = 30


def put_subscription(control, name, **settings):
    destination = {"kind": "queue", "account": "devstoreaccount1", "queue": name}
    document = json.dumps({"destination": destination} | settings).encode()
    url = f"http://{control}/subscriptions/{name}"
    urllib.request.urlopen(urllib.request.Request(url, document, method="PUT")).close()


def queue(connection, name):
    return QueueClient.from_connection_string(
        connection, name, message_decode_policy=TextBase64DecodePolicy()
    )


def take(client, enough):
    """Returns the texts of messages until `enough` says so of them."""
    texts = []
    end = time.monotonic() + WAIT_S
    while not enough(texts):
        if time.monotonic() > end:
            sys.exit(f"FAILED: only {len(texts)} events within {WAIT_S} s: {texts[-3:]}")
        for message in client.receive_messages(messages_per_page=32):
            texts.append(message.content)
            client.delete_message(message)
    return texts


def consumers(connection, control, file):
    grid, cloud = queue(connection, "grid"), queue(connection, "cloud")
    for client in (grid, cloud):
        client.create_queue()
    put_subscription(control, "grid")
    put_subscription(control, "cloud", schema="CloudEventSchemaV1_0")
    blobs = BlobServiceClient.from_connection_string(connection)
    container = blobs.create_container("photos")
    blob = container.upload_blob("a b.txt", b"text", client_request_id="mine")
    blob.set_standard_blob_tier(StandardBlobTier.COOL)
    blob.delete_blob()
    expected = [
        SystemEventNames.StorageBlobCreatedEventName,
        "Microsoft.Storage.BlobTierChanged",
        SystemEventNames.StorageBlobDeletedEventName,
    ]
    texts = [take(client, lambda texts: len(texts) >= 3) for client in (grid, cloud)]
    events = [EventGridEvent.from_json(text) for text in texts[0]]
    assert [event.event_type for event in events] == expected, events
    assert events[0].data["api"] == "PutBlob", events[0]
    assert events[0].data["clientRequestId"] == "mine", events[0]
    assert events[0].data["url"].endswith("/photos/a%20b.txt"), events[0]
    assert events[0].subject.endswith("/containers/photos/blobs/a b.txt"), events[0]
    sequencers = [event.data["sequencer"] for event in events]
    assert sequencers == sorted(set(sequencers)), sequencers
    clouds = [CloudEvent.from_json(text) for text in texts[1]]
    assert [event.type for event in clouds] == expected, clouds
    assert [event.id for event in clouds] == [event.id for event in events]
    with open(file, "w", encoding="utf-8") as out:
        json.dump([[json.loads(text) for text in both] for both in texts], out)
    print(f"azure-eventgrid of PyPI parses {len(events)} events in both schemas")


class Hook(BaseHTTPRequestHandler):
    """A webhook as Event Grid expects it; one below /closed does not pass the validation."""

    received = queues.Queue()

    def do_OPTIONS(self):
        self.send_response(200)
        if not self.path.startswith("/closed"):
            self.send_header("WebHook-Allowed-Origin", self.headers["WebHook-Request-Origin"])
        self.end_headers()

    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = b""
        if self.headers["aeg-event-type"] == "SubscriptionValidation":
            code = EventGridEvent.from_dict(texts[0]).data["validationCode"]
            code = "" if self.path.startswith("/closed") else code
            answer = json.dumps({"validationResponse": code}).encode()
        else:
            for text in texts:
                self.received.put((time.monotonic(), text))
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def webhook(connection, control):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    blobs = BlobServiceClient.from_connection_string(connection)
    container = blobs.create_container("hooked")
    # The path is in the subject, so that other subscriptions of this server do not matter.
    filters = {"subject_begins_with": "/blobServices/default/containers/hooked/"}
    for schema, parse in [
        ("EventGridSchema", EventGridEvent.from_dict),
        ("CloudEventSchemaV1_0", CloudEvent.from_dict),
    ]:
        try:
            closed = {"kind": "webhook", "url": f"{url}/closed"}
            put_subscription(control, "hook", schema=schema, destination=closed)
            sys.exit("FAILED: a webhook without validation was accepted")
        except urllib.error.HTTPError as error:
            assert error.code == 400, error
        hook = {"kind": "webhook", "url": f"{url}/open", "max_events_per_batch": 10}
        put_subscription(control, "hook", schema=schema, destination=hook, filter=filters)
        waits = []
        for number in range(50):
            container.upload_blob(f"{schema}{number}", b"x")
            acknowledged = time.monotonic()
            arrived, text = Hook.received.get(timeout=WAIT_S)
            assert parse(text).subject.endswith(f"{schema}{number}"), text
            waits.append(arrived - acknowledged)
        median, most = statistics.median(waits) * 1000, max(waits) * 1000
        print(f"webhook, {schema}: {median:.1f} ms from answer to event, at most {most:.1f} ms")
    server.shutdown()


def ports():
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
    print(*[bound.getsockname()[1] for bound in sockets])


def upload(connection, stop, file):
    """Uploads until the file `stop` exists and notes each acknowledged blob."""
    # Without retries, so that an upload whose answer is lost is not noted.
    blobs = BlobServiceClient.from_connection_string(connection, retry_total=0)
    queue(connection, "kills").create_queue()
    container = blobs.create_container("kills")
    number = 0
    with open(file, "a", encoding="utf-8") as out:
        while not os.path.exists(stop):
            number += 1
            try:
                etag = container.upload_blob(str(number), b"x").get_blob_properties().etag
                print(number, etag.strip('"'), file=out, flush=True)
            except ResourceExistsError:
                sys.exit("FAILED: a new name exists")
            except AzureError:
                time.sleep(0.05)


def compare(connection, control, file):
    with open(file, encoding="utf-8") as lines:
        acknowledged = dict(line.split() for line in lines)
    if not acknowledged:
        sys.exit("FAILED: no upload was acknowledged, so nothing is compared")
    wait_ready(control)
    client = queue(connection, "kills")
    seen = {}

    def enough(texts):
        for text in texts[len(seen.setdefault("all", [])) :]:
            event = EventGridEvent.from_json(text)
            seen["all"].append(event)
        found = {event.subject.rsplit("/", 1)[1] for event in seen["all"]}
        return found >= acknowledged.keys()

    take(client, enough)
    found = {event.subject.rsplit("/", 1)[1]: event.data["eTag"] for event in seen["all"]}
    for name, etag in acknowledged.items():
        assert found[name] == etag, (name, etag, found[name])
    # An event without an acknowledged upload belongs to a blob that exists all the same.
    blobs = BlobServiceClient.from_connection_string(connection).get_container_client("kills")
    for name in found.keys() - acknowledged.keys():
        assert blobs.get_blob_client(name).get_blob_properties().etag.strip('"') == found[name]
    repeated = len(seen["all"]) - len(found)
    print(f"{len(acknowledged)} acknowledged uploads under kill -9, each has its event;")
    print(f"{len(found) - len(acknowledged)} events of unacknowledged uploads, {repeated} repeated")


def wait_ready(control):
    end = time.monotonic() + WAIT_S
    while True:
        try:
            urllib.request.urlopen(f"http://{control}/ready").close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    commands = [consumers, webhook, ports, upload, compare]
    {command.__name__: command for command in commands}[sys.argv[1]](*sys.argv[2:])
