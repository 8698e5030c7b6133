"""Sends the most expensive requests all at once, and watches `/health`.

    watchdog.py BLOB QUEUE TABLE CONTROL PID [SECONDS]

Fails when `/health` or a small read takes longer than a second, when a request gets 500,
or when SIGTERM does not stop the server in time. On a busy machine the watch itself waits: the script
measures the longest such wait and adds it to the second. Addresses are `host:port`; PID is smalt's.
Uses only the standard library. See watchdog.sh.
"""

import base64
import http.client
import json
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from urllib.parse import quote

from sas import ACCOUNT, VERSION, account_sas

SAS = account_sas()
# The longest time for an answer in seconds, while requests occupy all processors.
SLOWEST = 1.0
# The interval of the watch, in seconds.
PAUSE = 0.02
# Requests in flight have five seconds to end; one record of a query may take two more seconds.
SHUTDOWN = 15.0
BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob"}
JSON_BODY = {"content-type": "application/json", "accept": "application/json;odata=nometadata"}
JSON_INPUT = "<InputSerialization><Format><Type>json</Type></Format></InputSerialization>"


class Service:
    """One of the server's addresses."""

    def __init__(self, address):
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)

    def send(self, method, path, headers=None, body=b"", timeout=60):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        join = "&" if "?" in path else "?"
        target = f"/{ACCOUNT}{path}{join}{SAS}"
        try:
            connection.request(method, target, body, {"x-ms-version": VERSION, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def leave(self, method, path, body, after, headers=""):
        """Sends a request and closes the connection without an answer, `after` seconds later."""
        join = "&" if "?" in path else "?"
        head = (
            f"{method} /{ACCOUNT}{path}{join}{SAS} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
            f"x-ms-version: {VERSION}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
        )
        with socket.create_connection((self.host, self.port), timeout=60) as client:
            client.sendall(head.encode() + body)
            time.sleep(after)


def query(expression, settings=""):
    for sign, entity in [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")]:
        expression = expression.replace(sign, entity)
    return (
        f"<QueryRequest><QueryType>SQL</QueryType><Expression>{expression}</Expression>{settings}"
        "</QueryRequest>"
    ).encode()


def ids(count, of):
    entry = b"<Latest>%s</Latest>"
    listed = b"".join(entry % base64.b64encode(b"%05d" % (at % of)) for at in range(count))
    return b"<BlockList>" + listed + b"</BlockList>"


def transaction(partition, first, count):
    lines = ["--b", "Content-Type: multipart/mixed; boundary=c", ""]
    for row in range(first, first + count):
        entity = {"PartitionKey": partition, "RowKey": f"{row:06}"}
        entity.update({f"p{at:03}": "v" * 40 for at in range(100)})
        lines += [
            "--c", "Content-Type: application/http", "Content-Transfer-Encoding: binary", "",
            f"POST /{ACCOUNT}/watched HTTP/1.1", "Content-Type: application/json",
            "Accept: application/json;odata=nometadata", "Prefer: return-no-content", "",
            json.dumps(entity), "",
        ]
    return "\r\n".join([*lines, "--c--", "--b--", ""]).encode()


def deletions():
    lines = []
    for at in range(256):
        lines += [
            "--b", "Content-Type: application/http", "Content-Transfer-Encoding: binary",
            f"Content-ID: {at}", "", f"DELETE /{ACCOUNT}/watched/none{at}?{SAS} HTTP/1.1",
            "x-a: " + "y" * 3_000, "", "",
        ]
    return "\r\n".join([*lines, "--b--", ""]).encode()


def expect(done, *statuses):
    status, body = done
    if status not in statuses:
        raise SystemExit(f"FAILED: setting up: {status} {body[:300]!r}")


def set_up(blob, table):
    expect(blob.send("PUT", "/watched?restype=container"), 201)
    put = lambda name, body: expect(blob.send("PUT", f"/watched/{name}", BLOCK_BLOB, body), 201)
    put("small", b"1")
    put("line", b"a" * 15_000_000 + b"\n")
    put("large", b"a" * 64 * 1024 * 1024)
    put("rows", (b"a" * 50 + b",12,x\n") * 150_000)
    put("wide", b"{" + b",".join(b'"k%d":1' % at for at in range(500_000)) + b"}\n")
    put("list", b'{"a":[' + b",".join([b'{"b":1}'] * 500_000) + b"]}\n")
    for at in range(1_000):
        block = quote(base64.b64encode(b"%05d" % at))
        expect(blob.send("PUT", f"/watched/blocks?comp=block&blockid={block}", {}, b"x"), 201)
    for at in range(2_000):
        tagged = {**BLOCK_BLOB, "x-ms-tags": f"k={at}"}
        expect(blob.send("PUT", f"/watched/many/{at:05}", tagged, b""), 201)
    expect(table.send("POST", "/Tables", JSON_BODY, b'{"TableName":"watched"}'), 201, 204)
    batch = {"content-type": "multipart/mixed; boundary=b"}
    for first in range(0, 10_000, 100):
        expect(table.send("POST", "/$batch", batch, transaction("p", first, 100)), 202)


def attacks(blob, table, control):
    """Returns names and functions that send one request and return status and body, or nothing."""
    like = query("SELECT COUNT(*) FROM BlobStorage WHERE _1 LIKE '%" + "a" * 5_000 + "b%'")
    asks = lambda name, asked: lambda: blob.send("POST", f"/watched/{name}?comp=query", {}, asked)
    blob_list = "/watched?restype=container&comp=list"
    conditions = " or ".join(f"p{at % 100:03} eq 'w{at}'" for at in range(900))
    filtered = f"/watched()?$filter={quote(conditions)}"
    trimmed = "".join(chr(0x4E00 + at) for at in range(10_000)) + "a"
    junk = b"<StorageServiceProperties>" + b"<a/>" * 10_000 + b"</StorageServiceProperties>"
    return {
        "LIKE": asks("line", like),
        "LIKE, with a client that disconnects": lambda: blob.leave(
            "POST", "/watched/line?comp=query", like, 0.2
        ),
        "LIKE with _": asks("line", query(
            "SELECT COUNT(*) FROM BlobStorage WHERE _1 LIKE '%a_" + "a" * 5_000 + "b%'")),
        "many conditions": asks("rows", query(
            "SELECT _2 FROM BlobStorage WHERE " + " OR ".join(["_1 = 'b'"] * 10_000))),
        "TRIM": asks("line", query(
            f"SELECT COUNT(TRIM(BOTH '{trimmed}' FROM _1)) FROM BlobStorage")),
        "a long field 49 times": asks("line", query(
            "SELECT " + ",".join(["UPPER(_1)"] * 49) + " FROM BlobStorage")),
        "a wide record": asks("wide", query(
            "SELECT " + ",".join(f"k{at}" for at in range(499_950, 499_999)) + " FROM BlobStorage",
            JSON_INPUT)),
        "many rows of a record": asks("list", query(
            "SELECT b FROM BlobStorage[*].a[*] WHERE " + " OR ".join(["b = 2"] * 1_000),
            JSON_INPUT)),
        "an unread answer": lambda: blob.leave(
            "POST", "/watched/line?comp=query", query("SELECT * FROM BlobStorage"), 3
        ),
        "a block list": lambda: blob.send(
            "PUT", "/watched/blocks?comp=blocklist", {}, ids(50_000, 1_000)),
        "its blocks": lambda: blob.send("GET", "/watched/blocks?comp=blocklist&blocklisttype=all"),
        "a copy": lambda: blob.send("PUT", "/watched/copied?comp=block&blockid=MDAw", {
            "x-ms-copy-source": f"http://{blob.host}:{blob.port}/{ACCOUNT}/watched/large?{SAS}",
            "x-ms-source-range": "bytes=1-60000000"}),
        "a filter": lambda: table.send("GET", filtered, JSON_BODY),
        "tags": lambda: blob.send("GET", "/?comp=blobs&where=" + quote("k > '0'")),
        "names": lambda: blob.send("GET", blob_list + "&include=metadata,tags,versions,deleted"),
        "prefixes": lambda: blob.send("GET", blob_list + "&delimiter=/&include=versions,deleted"),
        "properties": lambda: blob.send("PUT", "/?restype=service&comp=properties", {}, junk),
        "a batch": lambda: blob.send(
            "POST", "/?comp=batch", {"content-type": "multipart/mixed; boundary=b"}, deletions()),
        "the state": control_state(control),
    }


def control_state(control):
    def send():
        connection = http.client.HTTPConnection(control.host, control.port, timeout=60)
        try:
            connection.request("GET", "/state?blobs=1000000000")
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    return send


def attack(name, send, stop, failures):
    while not stop.is_set():
        try:
            done = send()
        except (OSError, http.client.HTTPException) as error:
            if not stop.is_set():
                failures.append(f"{name}: {error!r}")
                time.sleep(0.5)
            continue
        if done and done[0] == 500:
            failures.append(f"{name}: {done[0]} {done[1][:200]!r}")


def watch(blob, control, found):
    """Runs in its own process until it is stopped, so that only the server is measured."""
    while True:
        for name, service, path in [
            ("health", control, "/health"),
            ("read", blob, f"/{ACCOUNT}/watched/small?{SAS}"),
        ]:
            started = time.monotonic()
            found.put((name, started, None, None))
            connection = http.client.HTTPConnection(service.host, service.port, timeout=60)
            try:
                connection.request("GET", path, headers={"x-ms-version": VERSION})
                status = connection.getresponse().status
            except OSError as error:
                status = repr(error)
            connection.close()
            found.put((name, started, status, time.monotonic()))
        started = time.monotonic()
        time.sleep(PAUSE)
        found.put(("pause", started, 200, time.monotonic() - PAUSE))


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) // 1024


def main():
    blob, _, table, control = (Service(address) for address in sys.argv[1:5])
    pid, seconds = int(sys.argv[5]), float(sys.argv[6]) if len(sys.argv) > 6 else 20
    set_up(blob, table)
    found = multiprocessing.Queue()
    watching = multiprocessing.Process(target=watch, args=(blob, control, found), daemon=True)
    watching.start()
    stop, failures = threading.Event(), []
    threads = [
        threading.Thread(target=attack, args=(name, send, stop, failures), daemon=True)
        for name, send in attacks(blob, table, control).items()
    ]
    for thread in threads:
        thread.start()
    most, ends = 0, time.monotonic() + seconds
    while time.monotonic() < ends:
        most = max(most, resident_mib(pid))
        time.sleep(0.05)
    watched_until = time.monotonic()
    watching.terminate()
    watching.join()
    stop.set()
    os.kill(pid, signal.SIGTERM)
    stopped = time.monotonic()
    while os.path.exists(f"/proc/{pid}") and time.monotonic() - stopped < SHUTDOWN:
        if open(f"/proc/{pid}/stat", encoding="ascii").read().split()[2] == "Z":
            break
        time.sleep(0.05)
    ended = time.monotonic() - stopped
    if ended >= SHUTDOWN:
        os.kill(pid, signal.SIGKILL)
    asked = {}
    while not found.empty():
        name, started, status, answered = found.get()
        # A request without an answer has taken as long as the watch.
        asked[name, started] = (answered or watched_until) - started
        if status not in (None, 200):
            failures.append(f"{name} got {status}")
    slowest = {name: 0.0 for name, _ in asked}
    for (name, _), took in asked.items():
        slowest[name] = max(slowest[name], took)
    print(f"slowest: {', '.join(f'{name} {took:.2f} s' for name, took in slowest.items())}; "
          f"at most {most} MiB; exited {ended:.1f} s after SIGTERM")
    allowed = SLOWEST + slowest.pop("pause", 0.0)
    failures += [
        f"{name} took {slowest.get(name, 99):.2f} s, allowed are {allowed:.2f} s"
        for name in ("health", "read")
        if slowest.get(name, 99) > allowed
    ]
    if ended >= SHUTDOWN:
        failures.append(f"smalt did not exit within {SHUTDOWN} s after SIGTERM")
    if failures:
        raise SystemExit("FAILED: " + "; ".join(sorted(set(failures))[:10]))


if __name__ == "__main__":
    main()
