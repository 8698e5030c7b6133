"""Starts each row of fixtures/integrations.toml as its integration would, and compares: see there.

    integrations.py smalt BINARY            smalt, started under the program's name
    integrations.py argument BINARY         smalt, with the program's name as its first argument
    integrations.py azurite NODE DIRECTORY  Azurite, installed from npm into DIRECTORY

    --only TEXT                             only rows whose `who` contains TEXT
"""

import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from email.utils import formatdate
from pathlib import Path

from sas import ACCOUNT, KEY, shared_key

TABLE = Path(__file__).parent.parent / "fixtures" / "integrations.toml"
SERVICES = ["blob", "queue", "table"]
VERSION = "2024-11-04"
# Azurite takes seconds to start on a busy machine.
START_S = 60
STOP_S = 20


class Wrong(Exception):
    """A target that does not behave as its row says."""


class Target:
    """A program to start: smalt or Azurite."""

    def __init__(self, kind, arguments, work):
        self.kind = kind
        self.work = work
        if kind == "azurite":
            self.node, self.root = arguments[0], Path(arguments[1]) / "node_modules/azurite"
        else:
            self.binary = Path(arguments[0]).resolve()

    def command(self, program):
        if self.kind == "azurite":
            script = "azurite.js" if program == "azurite" else f"{program.split('-')[1]}/main.js"
            return [self.node, str(self.root / "dist/src" / script)]
        if self.kind == "argument":
            return [str(self.binary), program]
        link = self.work / program
        if not link.exists():
            link.symlink_to(self.binary)
        return [str(link)]

    def override(self, row):
        """Returns the row for this target."""
        other = row.get("azurite", {}) if self.kind == "azurite" else {}
        if other and "why" not in other:
            raise Wrong("the row has a difference without `why`")
        return {**row, **other}


class Process:
    """A started program, whose output is read continuously."""

    def __init__(self, command, environment, work):
        self.lines, self.errors = [], []
        self.child = subprocess.Popen(
            command,
            env=environment,
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # As `<&-`: some runners give a container no standard input at all.
            preexec_fn=lambda: os.close(0),
        )
        self.readers = [
            threading.Thread(target=self.read, args=pair, daemon=True)
            for pair in [(self.child.stdout, self.lines), (self.child.stderr, self.errors)]
        ]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def read(stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))

    def await_lines(self, patterns):
        """Waits until lines match the patterns in order."""
        end = time.monotonic() + START_S
        while True:
            matched, rest = [], iter(list(self.lines))
            for pattern in patterns:
                found = (re.fullmatch(pattern, line) for line in rest)
                matched.append(next((match for match in found if match), None))
            if all(matched):
                return
            if time.monotonic() > end or self.child.poll() is not None:
                time.sleep(0.2)
                missing = patterns[matched.index(None)]
                raise Wrong(f"no line {missing!r} in its place")
            time.sleep(0.02)

    def end(self, number):
        """Sends a signal and returns the exit code."""
        self.child.send_signal(number)
        return self.ended()

    def ended(self):
        try:
            code = self.child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise Wrong(f"the program does not exit within {STOP_S} s") from None
        for reader in self.readers:
            reader.join(STOP_S)
        return code


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports


def send(request, ports, is_https, accounts):
    """Sends a request and returns the status."""
    service = request.get("service", "blob")
    method, target = request["send"].split(" ", 1)
    body = request.get("body", "").encode()
    account, key = next(iter(accounts.items()))
    headers = {"x-ms-version": VERSION, "x-ms-date": formatdate(usegmt=True)}
    headers |= {"content-length": str(len(body))} if method in ("PUT", "POST") else {}
    headers |= request.get("headers", {})
    if request.get("sign"):
        headers["authorization"] = shared_key(method, target, headers, service, account, key)
    port = ports[SERVICES.index(service)]
    if host := request.get("host"):
        headers["host"] = host.replace("PORT", str(port))
    address = request.get("to", "127.0.0.1")
    if is_https:
        trusting = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(address, port, timeout=30, context=trusting)
    else:
        connection = http.client.HTTPConnection(address, port, timeout=30)
    connection.request(method, target, body=body or None, headers=headers)
    response = connection.getresponse()
    status = response.status
    response.read()
    if idle := request.get("idle_s"):
        await_end(connection.sock, idle)
    connection.close()
    return status


def await_end(stream, idle):
    """Checks that the server closes an idle connection after this time; node takes a second more."""
    begun = time.monotonic()
    stream.settimeout(idle + 5)
    if stream.recv(1) != b"":
        raise Wrong("the server sends data on an idle connection")
    if (waited := time.monotonic() - begun) < idle * 0.9:
        raise Wrong(f"an idle connection closes after {waited:.1f} s, expected {idle}")


def check_closing(process, services):
    for name in services:
        closing = f"Azurite {name.title()} service is closing..."
        closed = f"Azurite {name.title()} service successfully closed"
        if closing not in process.lines or closed not in process.lines:
            raise Wrong(f"{name}: the program does not print that it is closed")
        if process.lines.index(closing) > process.lines.index(closed):
            raise Wrong(f"{name}: the program prints that it is closed before it is closing")


def check_absent(process, patterns):
    for pattern in patterns:
        for line in process.lines + process.errors:
            if re.search(pattern, line):
                raise Wrong(f"{pattern!r} is in {line!r}")


def bound_ports(process, ports):
    """Returns the ports; for port 0 the printed ones."""
    text = "\n".join(process.lines)
    found = []
    for name, port in zip(SERVICES, ports):
        said = re.search(rf"{name.title()} service (?:is )?successfully .*:(\d+)$", text, re.M)
        found.append(int(said[1]) if said and port == 0 else port)
    return found


def run(target, row, work):
    row = target.override(row)
    if row.get("skip"):
        return f"not run: {row['why']}"
    program = row.get("program", "azurite")
    services = SERVICES if program == "azurite" else [program.split("-")[1]]
    ports = [0] * 3 if row.get("ports") == 0 else free_ports(3)
    directory = tempfile.mkdtemp(dir=work)
    names = {**dict(zip(SERVICES, ports)), "dir": directory, "tls": str(work / "tls")}
    # Only these names, because a regular expression has its own braces.
    fill = lambda text: re.sub(r"\{(blob|queue|table|dir|tls)\}", lambda m: str(names[m[1]]), text)
    arguments = [fill(argument) for argument in row.get("argv", [])]
    exits = row.get("exits")
    for name in services if exits is None else []:
        if f"--{name}Port" not in arguments:
            arguments += [f"--{name}Port", str(names[name])]
    given = {name: fill(value) for name, value in row.get("env", {}).items()}
    environment = {"PATH": os.environ["PATH"], "SMALT_CONTROL_PORT": "0", **given}
    # At the end, because Azurite takes the word after a switch as its value.
    arguments += ["--disableTelemetry"] if exits is None else []
    command = target.command(program) + arguments
    process = Process(command, environment, directory)
    try:
        expected = [fill(pattern) for pattern in row.get("stdout", [])]
        if exits is not None:
            if (code := process.ended()) != exits:
                raise Wrong(f"the program exits with {code}, expected {exits}")
            process.await_lines(expected)
        else:
            is_https = "--cert" in arguments
            accounts = dict(
                part.split(":")[:2] for part in given.get("AZURITE_ACCOUNTS", "").split(";") if part
            )
            process.await_lines([rf".*{services[-1].title()} service .*successfully.*"])
            if target.kind == "azurite":
                # It handles signals a moment after it printed that it is ready.
                time.sleep(1)
            for request in row.get("requests", []):
                bound = bound_ports(process, ports)
                status = send(request, bound, is_https, accounts or {ACCOUNT: KEY})
                if status != request["status"]:
                    raise Wrong(f"{request['send']}: {status}, expected {request['status']}")
            process.await_lines(expected)
            code = process.end(getattr(signal, f"SIG{row.get('signal', 'TERM')}"))
            if code != row.get("code", 0):
                raise Wrong(f"it ends with {code}")
            if row.get("closes", True):
                check_closing(process, services)
        errors = "\n".join(process.errors)
        for pattern in row.get("stderr", []):
            if not re.search(pattern, errors):
                raise Wrong(f"no {pattern!r} on standard error")
        check_absent(process, row.get("absent", []))
        for path in row.get("files", []):
            if not Path(fill(path)).is_file():
                raise Wrong(f"there is no {path}")
    except (Wrong, OSError, http.client.HTTPException) as error:
        said = "\n      ".join([" ".join(command), *process.lines, *process.errors])
        raise Wrong(f"{error}\n      {said}") from None
    finally:
        if process.child.poll() is None:
            process.child.kill()
            process.child.wait()
    return f"ok, differs: {row['why']}" if "why" in row else "ok"


def make_tls(directory):
    """Writes a self-signed certificate in each accepted form."""
    directory.mkdir()
    made = lambda *command: subprocess.run(
        ["openssl", *command], cwd=directory, check=True, capture_output=True
    )
    made(
        *["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"],
        *["-keyout", "key.pem", "-out", "cert.pem"],
    )
    for name, options in [("modern.pfx", []), ("legacy.pfx", ["-legacy"])]:
        made(
            *["pkcs12", "-export", *options, "-inkey", "key.pem", "-in", "cert.pem"],
            *["-passout", "pass:changeit", "-out", name],
        )


def main():
    arguments = sys.argv[1:]
    only = ""
    if "--only" in arguments:
        at = arguments.index("--only")
        only = arguments[at + 1]
        del arguments[at : at + 2]
    rows = tomllib.loads(TABLE.read_text())["row"]
    failed = ran = 0
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        make_tls(work / "tls")
        target = Target(arguments[0], arguments[1:], work)
        for row in rows:
            if only not in row["who"]:
                continue
            ran += 1
            try:
                outcome = run(target, row, work)
            except Wrong as error:
                failed += 1
                outcome = f"FAILED: {error}"
            print(f"{target.kind:<9} {row['who']}: {outcome}", flush=True)
    print(f"{target.kind}: {ran - failed} of {ran} rows")
    sys.exit(1 if failed or not ran else 0)


main()
