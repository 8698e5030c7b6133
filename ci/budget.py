#!/usr/bin/env python3
"""Counts the instructions that smalt executes for a request, and compares them with budgets.

Unlike times, the counts are the same on a busy and a quiet machine. Valgrind's tool callgrind counts
user-space instructions, without the kernel's. The counts depend on the build: `fixtures/budgets.tsv` has
a column per build, with the compiler that made it, and those of another compiler are not compared. Under
callgrind SHA-256 runs without the processor's instructions for it, so that rows that compute signatures
cost some thousand instructions more than they do natively.

  ci/budget.py BUILD           BUILD names the column, and the programs' folder in target (SMALT_BIN_DIR)
  ci/budget.py BUILD --set     writes the measured counts as the budgets
  ci/budget.py BUILD --only X  measures the rows whose name contains X
"""

import http.client
import os
import re
import subprocess
import sys
import tempfile
from email.utils import formatdate
from pathlib import Path

from sas import ACCOUNT, VERSION, account_sas, shared_key

ROOT = Path(__file__).resolve().parent.parent
BUDGETS = ROOT / "fixtures" / "budgets.tsv"
TOLERANCE = 0.03
COMPILER = "(compiler)"
ENTITY = {
    "accept": "application/json;odata=nometadata",
    "content-type": "application/json",
    "prefer": "return-no-content",
}
BLOB = {"x-ms-blob-type": "BlockBlob"}
MESSAGE = f"<QueueMessage><MessageText>{'t' * 1024}</MessageText></QueueMessage>"


def entity(number):
    return (
        f'{{"PartitionKey":"p","RowKey":"{number:09}","Text":"One of very many.","Count":42,'
        '"At":"2024-03-01T12:00:00Z","At@odata.type":"Edm.DateTime"}'
    )


# Name, service, requests, method, path, headers, body; `{}` in a path and `None` as a body take the
# request's number.
READS = [
    ("head", "blob", 200, "HEAD", "box/small", {}, ""),
    ("get 4 KiB", "blob", 200, "GET", "box/small", {}, ""),
    ("get 4 KiB, account key", "blob", 200, "GET", "box/small", "key", ""),
    ("list of 100", "blob", 20, "GET", "list?restype=container&comp=list", {}, ""),
    ("peek", "queue", 200, "GET", "peeked/messages?peekonly=true", {}, ""),
    ("get entity", "table", 200, "GET", "tab(PartitionKey='p',RowKey='000000000')", ENTITY, ""),
]
WRITES = [
    ("put 4 KiB", "blob", 200, "PUT", "box/own-{}", BLOB, "s" * 4096),
    ("overwrite 4 KiB", "blob", 200, "PUT", "box/own-0", BLOB, "s" * 4096),
    ("set metadata", "blob", 200, "PUT", "box/small?comp=metadata", {"x-ms-meta-state": "done"}, ""),
    ("put message 1 KiB", "queue", 200, "POST", "queue/messages", {}, MESSAGE),
    ("insert entity", "table", 200, "POST", "tab", ENTITY, None),
]
LARGE = [("put 8 MiB", "blob", 2, "PUT", "box/large-{}", BLOB, "l" * (8 << 20))]
SETUP = [
    ("blob", "PUT", "box?restype=container", {}, ""),
    ("blob", "PUT", "list?restype=container", {}, ""),
    ("blob", "PUT", "box/small", BLOB, "s" * 4096),
    ("queue", "PUT", "queue", {}, ""),
    ("queue", "PUT", "peeked", {}, ""),
    ("queue", "POST", "peeked/messages", {}, MESSAGE),
    ("table", "POST", "Tables", ENTITY, '{"TableName":"tab"}'),
    ("table", "POST", "tab", ENTITY, entity(0)),
    *(("blob", "PUT", f"list/blob-{n:03}", BLOB, "x") for n in range(100)),
]
MODES = [
    ("memory", ["--inMemoryPersistence"], READS + WRITES + LARGE),
    ("durable", [], [READS[1], *WRITES]),
]


class Server:
    """A smalt under callgrind, with a kept-alive connection per service."""

    def __init__(self, binary, flags, folder):
        self.folder, self.dumps, self.sent = folder, 0, 0
        ports = [part for name in ["blob", "queue", "table", "control"] for part in (f"--{name}Port", "0")]
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/counts", "--quiet"]
        # One worker: which worker serves a request would change the counts.
        self.process = subprocess.Popen(
            [*command, binary, "--location", f"{folder}/data", *ports, *flags],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TOKIO_WORKER_THREADS": "1"},
        )
        self.services = {}
        for line in self.process.stdout:
            if found := re.match(r"  (blob|queue|table) +http://(\S+)", line):
                self.services[found[1]] = http.client.HTTPConnection(found[2], timeout=60)
            if "DefaultEndpointsProtocol" in line:
                return
        sys.exit("smalt did not start under valgrind")

    def send(self, service, method, path, headers, body):
        self.sent += 1
        path = f"/{ACCOUNT}/" + path.replace("{}", str(self.sent))
        body = entity(self.sent) if body is None else body
        if headers == "key":
            headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": VERSION}
            headers["authorization"] = shared_key(method, path, headers)
        else:
            path += ("&" if "?" in path else "?") + account_sas()
        connection = self.services[service]
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {content.decode()}")

    def dump(self):
        """Ends the current count and returns its file."""
        command = ["callgrind_control", "--dump", str(self.process.pid)]
        subprocess.run(command, check=True, capture_output=True)
        self.dumps += 1
        return f"{self.folder}/counts.{self.dumps}"

    def count(self, requests, *request):
        """Returns the instructions per request."""
        for _ in range(requests // 4 + 1):
            self.send(*request)
        self.dump()
        for _ in range(requests):
            self.send(*request)
        total = re.search(r"^totals: (\d+)", Path(self.dump()).read_text(), re.M)
        return int(total[1]) // requests


def measure(binary, only):
    counts = {}
    for mode, flags, rows in MODES:
        rows = [row for row in rows if only in f"{row[0]}, {mode}"]
        if not rows:
            continue
        with tempfile.TemporaryDirectory() as folder:
            server = Server(binary, flags, folder)
            try:
                for request in SETUP:
                    server.send(*request)
                for name, service, requests, *request in rows:
                    row = f"{name}, {mode}"
                    counts[row] = server.count(requests, service, *request)
            finally:
                server.process.kill()
                server.process.wait()
    return counts


def read():
    lines = [line.split("\t") for line in BUDGETS.read_text().splitlines() if line]
    builds = lines[0][1:]
    return builds, {name: dict(zip(builds, values)) for name, *values in lines[1:]}


def write(builds, budgets):
    lines = [["operation", *builds]]
    lines += [[name, *(str(row.get(build, "")) for build in builds)] for name, row in budgets.items()]
    BUDGETS.write_text("".join("\t".join(line) + "\n" for line in lines))


def main():
    build, *options = sys.argv[1:]
    only = options[options.index("--only") + 1] if "--only" in options else ""
    binary = Path(os.environ.get("SMALT_BIN_DIR", ROOT / "target" / build)) / "smalt"
    counts = measure(binary, only)
    builds, budgets = read()
    compiler = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    if "--set" in options:
        for name, count in [(COMPILER, compiler), *counts.items()]:
            budgets.setdefault(name, {})[build] = count
        return write(builds, budgets)
    failed = False
    known = budgets.get(COMPILER, {}).get(build)
    print(f"{'operation':<36}{'instructions':>14}{'budget':>14}")
    for name, count in counts.items():
        budget = int(budgets.get(name, {}).get(build) or 0)
        note = ""
        if count > budget * (1 + TOLERANCE):
            note, failed = "ABOVE: find the cause, or raise the budget and say why", True
        elif count < budget * (1 - TOLERANCE):
            note = "below: lower the budget with --set"
        print(f"{name:<36}{count:>14,}{budget:>14,}  {note}")
    if known != compiler:
        print(f"NOT COMPARED: the budgets are those of {known}, this is {compiler}; set them with --set")
    elif failed:
        sys.exit("FAILED: an operation executes more instructions than its budget")


if __name__ == "__main__":
    main()
