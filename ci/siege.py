#!/usr/bin/env python3
"""Attacks one server in all ways at once while honest clients write to it.

Writers put, replace and delete blobs, messages and entities and record every acknowledged write. Meanwhile the
server is killed and restarted, its disk fills up and empties, its clock jumps, requests fail by fault rules, and
hostile clients send expensive queries, heads and bodies. At the end everything acknowledged must be there, and
memory, descriptors and disk must not have grown.

    siege.py SMALT DIR [--seconds N] [--seed N]

DIR is an empty directory, preferably on a small tmpfs (ci/siege.sh mounts one). Exits with 1 when something was lost.
"""

import argparse
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

from sas import ACCOUNT, VERSION, account_sas

SAS = account_sas()
WRITERS = 4
KEYS = 150  # Names that each writer reuses, so that the stored data do not grow.
MESSAGES = 2000  # Messages that may wait: a slow receiver must not fill the disk.


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Server:
    """The server process, restarted on the same ports after each kill."""

    def __init__(self, binary, directory):
        self.ports = {name: free_port() for name in ("blob", "queue", "table", "control")}
        self.command = [binary, "--location", str(directory / "data")]
        for name, port in self.ports.items():
            self.command += [f"--{name}Port", str(port)]
        self.log = open(directory.parent / (directory.name + ".log"), "ab")
        self.starts = 0
        self.start()

    def start(self):
        self.starts += 1
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=self.log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise SystemExit(f"FAILED: the server exited with {self.process.returncode}; see {self.log.name}")
            try:
                if self.ask("control", "GET", "/health")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise SystemExit("FAILED: the server did not answer within 60 s")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.start()

    def ask(self, service, method, path, body=b"", headers=None, timeout=30):
        """Returns status and body. Raises OSError or HTTPException without a complete answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[service], timeout=timeout)
        try:
            if service != "control":
                path = f"/{ACCOUNT}/{path}" + ("&" if "?" in path else "?") + SAS
            connection.request(method, path, body, {"x-ms-version": VERSION, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


class Register:
    """One name and its possible values; None means absent."""

    def __init__(self):
        self.may_be = {None}

    def write(self, value, outcome):
        if outcome == "done":
            self.may_be = {value}
        elif outcome == "unclear":
            self.may_be.add(value)

    def read(self, value):
        found = value in self.may_be
        if found:
            self.may_be = {value}
        return found


def outcome(call):
    """Returns whether a write succeeded, failed or is unclear."""
    try:
        status, _ = call()
    except (OSError, http.client.HTTPException):
        return "unclear"
    if status < 300 or status == 404:
        return "done"
    return "refused" if status in (409, 412, 429, 503) else "unclear"


class Siege:
    def __init__(self, server, directory, seconds, seed):
        self.server, self.directory, self.random = server, directory, random.Random(seed)
        self.over = threading.Event()
        self.begun, self.seconds = time.monotonic(), seconds
        self.lost, self.samples, self.events = [], [], {}
        self.counts = {"done": 0, "refused": 0, "unclear": 0}
        self.lock = threading.Lock()
        self.put, self.maybe_put, self.taken = set(), set(), set()

    def count(self, what, outcome_):
        with self.lock:
            self.counts[outcome_] += 1
        return outcome_

    def event(self, name):
        with self.lock:
            self.events[name] = self.events.get(name, 0) + 1

    # Honest clients.

    def blob(self, name, value):
        if value is None:
            return lambda: self.server.ask("blob", "DELETE", f"siege/{name}")
        return lambda: self.server.ask("blob", "PUT", f"siege/{name}", content(value), {"x-ms-blob-type": "BlockBlob"})

    def entity(self, name, value):
        path = f"siege(PartitionKey='p',RowKey='{name}')"
        if value is None:
            return lambda: self.server.ask("table", "DELETE", path, headers={"If-Match": "*"})
        body = json.dumps({"value": value}).encode()
        return lambda: self.server.ask("table", "PUT", path, body, {"Content-Type": "application/json"})

    def seen_blob(self, name):
        status, body = self.server.ask("blob", "GET", f"siege/{name}")
        if status == 200:
            return value_of(body)
        return None if status == 404 else Ellipsis

    def seen_entity(self, name):
        headers = {"Accept": "application/json;odata=nometadata"}
        status, body = self.server.ask("table", "GET", f"siege(PartitionKey='p',RowKey='{name}')", headers=headers)
        if status == 200:
            return json.loads(body)["value"]
        return None if status == 404 else Ellipsis

    def writer(self, number):
        rng = random.Random(f"{number} {self.random.random()}")
        kinds = {"blob": (self.blob, self.seen_blob), "entity": (self.entity, self.seen_entity)}
        registers = {}
        serial = 0
        while not self.over.is_set():
            serial += 1
            kind = rng.choice(("blob", "blob", "entity", "message"))
            if kind == "message":
                with self.lock:
                    waiting = len(self.put) - len(self.taken)
                if waiting < MESSAGES:
                    self.send(f"{number}.{serial}")
                else:
                    self.receive()
                continue
            name = f"{number}-{rng.randrange(KEYS)}"
            register = registers.setdefault((kind, name), Register())
            write, seen = kinds[kind]
            if rng.random() < 0.3:
                self.check(kind, name, register, seen)
                continue
            value = None if rng.random() < 0.2 else f"{number}.{serial}.{rng.choice((10, 1000, 20000, 60000))}"
            register.write(value, self.count(kind, outcome(write(name, value))))
        return registers, kinds

    def check(self, kind, name, register, seen):
        try:
            value = seen(name)
        except (OSError, http.client.HTTPException):
            return False
        if value is Ellipsis:
            return False
        if not register.read(value):
            self.lost.append(f"{kind} {name} is {value}, expected one of {sorted(map(str, register.may_be))}")
        return True

    def send(self, text):
        body = f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>".encode()
        result = self.count("message", outcome(lambda: self.server.ask("queue", "POST", "siege/messages?messagettl=-1", body)))
        with self.lock:
            if result == "done":
                self.put.add(text)
            elif result == "unclear":
                self.maybe_put.add(text)

    def receive(self):
        """Takes up to 32 messages and deletes them. Returns their number, or None without an answer."""
        try:
            status, body = self.server.ask("queue", "GET", "siege/messages?numofmessages=32&visibilitytimeout=5")
        except (OSError, http.client.HTTPException):
            return None
        if status != 200:
            return None
        messages = re.findall(rb"<MessageId>(.*?)</MessageId>.*?<PopReceipt>(.*?)</PopReceipt>.*?<MessageText>(.*?)<", body)
        for identity, receipt, text in messages:
            with self.lock:
                if text.decode() not in self.put | self.maybe_put:
                    self.lost.append(f"message {text.decode()} was never put")
                self.taken.add(text.decode())
            path = f"siege/messages/{identity.decode()}?popreceipt={urllib.parse.quote(receipt.decode(), safe='')}"
            outcome(lambda path=path: self.server.ask("queue", "DELETE", path))
        return len(messages)

    def receiver(self):
        while not self.over.is_set():
            if not self.receive():
                time.sleep(0.05)

    # Attacks.

    def chaos(self):
        while not self.over.wait(self.random.uniform(2, 6)):
            attack = self.random.choice((self.kill, self.kill, self.fill, self.jump, self.fault, self.freeze))
            try:
                attack()
                self.event(attack.__name__)
            except (OSError, http.client.HTTPException) as error:
                print(f"  {attack.__name__}: {error!r}", flush=True)

    def kill(self):
        self.server.kill()

    def fill(self):
        """Fills the disk for some seconds."""
        if os.statvfs(self.directory).f_blocks * os.statvfs(self.directory).f_frsize > 1 << 30:
            return
        filler = self.directory / "filler"
        try:
            with open(filler, "wb", buffering=0) as file:
                while True:
                    file.write(bytes(1 << 16))
        except OSError:
            pass
        time.sleep(self.random.uniform(1, 4))
        filler.unlink()

    def jump(self):
        self.server.ask("control", "PUT", "/clock", json.dumps({"advance_s": self.random.choice((1, 60, 86_400))}).encode())

    def fault(self):
        fault = self.random.choice(({"kind": "refuse", "status": 503}, {"kind": "reset"}, {"kind": "answer_lost"}, {"kind": "latency", "delay_ms": 50}))
        self.server.ask("control", "POST", "/faults", json.dumps({"times": 30, "fault": fault}).encode())

    def freeze(self):
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        self.server.process.send_signal(signal.SIGCONT)

    def hostile(self, number):
        rng = random.Random(number)
        attacks = (self.expensive_query, self.stalled_head, self.short_body, self.broken_bytes, self.many_connections)
        while not self.over.is_set():
            attack = rng.choice(attacks)
            try:
                attack(rng)
                self.event(attack.__name__)
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)

    def expensive_query(self, rng):
        self.server.ask("blob", "PUT", "hostile/line", b"a" * 900_000 + b"\n", {"x-ms-blob-type": "BlockBlob"})
        pattern = "%" + "a" * rng.choice((1, 4000)) + "b%"
        query = f"<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT COUNT(*) FROM BlobStorage WHERE _1 LIKE '{pattern}'</Expression></QueryRequest>"
        self.server.ask("blob", "POST", "hostile/line?comp=query", query.encode(), timeout=2)

    def raw(self, data, wait=0.2):
        with socket.create_connection(("127.0.0.1", self.server.ports["blob"]), timeout=5) as sock:
            sock.sendall(data)
            time.sleep(wait)

    def stalled_head(self, rng):
        self.raw(b"GET /" + b"a" * rng.choice((1, 10_000, 70_000)), wait=1)

    def short_body(self, rng):
        self.raw(f"PUT /{ACCOUNT}/hostile/short?{SAS} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-version: {VERSION}\r\nx-ms-blob-type: BlockBlob\r\nContent-Length: 5000000\r\n\r\n".encode() + b"x" * 100_000)

    def broken_bytes(self, rng):
        self.raw(rng.randbytes(2000), wait=0)

    def many_connections(self, rng):
        connections = [socket.create_connection(("127.0.0.1", self.server.ports["queue"]), timeout=5) for _ in range(100)]
        time.sleep(0.5)
        for connection in connections:
            connection.close()

    def watch(self):
        """Samples the process's resources, and checks that it still answers."""
        while not self.over.wait(5):
            try:
                pid = self.server.process.pid
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                resident = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) // 1024
                descriptors = len(os.listdir(f"/proc/{pid}/fd"))
                disk = sum(f.stat().st_size for f in (self.directory / "data").rglob("*") if f.is_file()) >> 20
                self.samples.append((time.monotonic() - self.begun, resident, descriptors, disk))
            except (OSError, TypeError):
                continue

    # The whole run.

    def prepare(self):
        for service, method, path, body, headers in (
            ("blob", "PUT", "siege?restype=container", b"", {}),
            ("blob", "PUT", "hostile?restype=container", b"", {}),
            ("queue", "PUT", "siege", b"", {}),
            ("table", "POST", "Tables", b'{"TableName":"siege"}', {"Content-Type": "application/json"}),
        ):
            status, answer = self.server.ask(service, method, path, body, headers)
            if status >= 300:
                raise SystemExit(f"FAILED: {method} {path}: {status} {answer[:300]}")

    def run(self):
        self.prepare()
        accounts = {}
        threads = [threading.Thread(target=lambda n=n: accounts.setdefault(n, self.writer(n))) for n in range(WRITERS)]
        threads += [threading.Thread(target=target) for target in (self.receiver, self.watch, self.chaos)]
        threads += [threading.Thread(target=self.hostile, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        while time.monotonic() - self.begun < self.seconds and not self.lost:
            time.sleep(min(60, self.seconds / 4))
            last = self.samples[-1] if self.samples else (0, 0, 0, 0)
            print("%5d s  %s  rss %d MiB, %d descriptors, %d MiB on disk; started %d times"
                  % (time.monotonic() - self.begun, self.counts, *last[1:], self.server.starts), flush=True)
        self.over.set()
        for thread in threads:
            thread.join()
        return accounts

    def settle(self, accounts):
        """Checks everything that was acknowledged; returns the number of checked names."""
        self.server.ask("control", "DELETE", "/faults")
        self.server.kill()
        looked_at = 0
        for registers, kinds in accounts.values():
            for (kind, name), register in registers.items():
                if not self.check(kind, name, register, kinds[kind][1]):
                    self.lost.append(f"{kind} {name} cannot be read")
                looked_at += 1
        quiet = 0
        while quiet < 3:
            came = self.receive()
            quiet = quiet + 1 if came == 0 else 0
            if came == 0:
                time.sleep(2.5)
        for text in sorted(self.put - self.taken)[:20]:
            self.lost.append(f"message {text} never arrived")
        return looked_at

    def growth(self):
        """Returns what grew from the second third of the run to the last."""
        third = self.seconds / 3
        found = []
        for index, name, slack in ((1, "memory, MiB", 64), (2, "descriptors", 150), (3, "disk, MiB", 32)):
            middle = [s[index] for s in self.samples if third <= s[0] < 2 * third]
            end = [s[index] for s in self.samples if s[0] >= 2 * third]
            if middle and end:
                print(f"{name}: at most {max(middle)} in the second third, {max(end)} in the last")
                if max(end) > 1.5 * max(middle) + slack:
                    found.append(f"{name} grew from {max(middle)} to {max(end)}")
        return found


def content(value):
    """Returns a blob's bytes: its value, padded to the length at the value's end."""
    length = int(value.rsplit(".", 1)[1])
    line = value.encode() + b"\n"
    return (line * (length // len(line) + 1))[: max(length, len(line))]


def value_of(body):
    """Returns the value of these bytes, or a description of other bytes."""
    value = body.split(b"\n", 1)[0].decode(errors="replace")
    whole = re.fullmatch(r"[\d.]+", value) and content(value) == body
    return value if whole else f"other bytes: {body[:40]!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("smalt")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    server = Server(options.smalt, options.directory.resolve())
    siege = Siege(server, options.directory.resolve(), options.seconds, options.seed)
    looked_at = siege.settle(siege.run())
    failures = siege.lost + siege.growth()
    server.process.terminate()
    if server.process.wait(30) != 0:
        failures.append(f"the server exited with {server.process.returncode}")
    print(f"writes: {siege.counts}; {len(siege.taken)} messages received, {looked_at} names checked at the end")
    print(f"attacks: {siege.events}; started {server.starts} times")
    for failure in failures[:20]:
        print("FAILED:", failure)
    print(f"{options.seconds} s, {len(failures)} failures")
    sys.exit(1 if failures else 0)


main()
