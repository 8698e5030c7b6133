"""Starts smalt for tests: on free ports, in memory, with a clock, faults and snapshots.

    from smalt.testing import Smalt

    with Smalt() as smalt:
        blobs = BlobServiceClient.from_connection_string(smalt.connection_string)
        smalt.clock.advance(days=7)

The pytest fixtures `smalt` and `smalt_server` come with the package: see `smalt.pytest_plugin`.
"""

import atexit
import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

from smalt import program

__all__ = ["Clock", "Faults", "Smalt", "SmaltError", "Snapshots"]

_STOP_TIMEOUT_S = 15


class SmaltError(Exception):
    """smalt did not start, or its control endpoint refused a request."""


class Smalt:
    """One running smalt, which serves no other test run.

    `location` keeps the data in a directory; without it everything is in memory. `seed` is a seed
    file or folder. `accounts` maps names to keys in Base64, in place of Azurite's account.
    `arguments` are further arguments of the command line.
    """

    def __init__(
        self,
        *,
        location: str | Path | None = None,
        seed: str | Path | None = None,
        accounts: Mapping[str, str] | None = None,
        arguments: Iterable[str] = (),
        start_timeout_s: float = 30,
    ) -> None:
        self._command = [str(program())]
        for service in ("blob", "queue", "table", "control"):
            self._command += [f"--{service}Port", "0"]
        if location is None:
            self._command += ["--inMemoryPersistence"]
        else:
            self._command += ["--location", str(location)]
        if seed is not None:
            self._command += ["--seed", str(seed)]
        if accounts is not None:
            given = ";".join(f"{name}:{key}" for name, key in accounts.items())
            self._command += ["--accounts", given]
        self._command += arguments
        self._start_timeout_s = start_timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._ready: dict[str, Any] = {}
        self.clock = Clock(self)
        self.faults = Faults(self)
        self.snapshots = Snapshots(self)

    def start(self) -> "Smalt":
        """Starts smalt and waits until it serves.

        Raises SmaltError with the end of its log if it does not.
        """
        if self._process is not None:
            raise SmaltError("smalt is already running")
        self._folder = Path(tempfile.mkdtemp(prefix="smalt-"))
        ready, log = self._folder / "ready.json", self._folder / "log"
        with open(log, "wb") as output:
            self._process = subprocess.Popen(
                [*self._command, "--readyFile", str(ready), "--stopWithStdin"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        atexit.register(self.stop)
        deadline = time.monotonic() + self._start_timeout_s
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                text = log.read_text(errors="replace")[-2000:]
                self.stop()
                raise SmaltError(f"smalt did not start: {text}")
            time.sleep(0.01)
        self._ready = json.loads(ready.read_text())
        return self

    def stop(self) -> None:
        """Stops smalt and waits until it has ended. Does nothing if it is not running."""
        process, self._process = self._process, None
        if process is None:
            return
        atexit.unregister(self.stop)
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> "Smalt":
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def connection_string(self) -> str:
        """The connection string of the first account, for Microsoft's SDKs."""
        return str(self._ready["accounts"][0]["connection_string"])

    @property
    def account(self) -> str:
        """The name of the first account."""
        return str(self._ready["accounts"][0]["name"])

    @property
    def key(self) -> str:
        """The key of the first account, in Base64."""
        return str(self._ready["accounts"][0]["key"])

    def url(self, service: str) -> str:
        """The URL of `blob`, `queue` or `table` with the account, or of `control`."""
        url = str(self._ready[service]["url"])
        return url if service == "control" else f"{url}/{self.account}"

    def reset(self) -> None:
        """Returns to the state after the start, seeds included. Fault rules stay."""
        self._ask("POST", "/state/reset")

    def export_state(self, path: str | Path) -> None:
        """Writes the whole state to a file."""
        with self._open("GET", "/state/export") as answer, open(path, "wb") as file:
            shutil.copyfileobj(answer, file)

    def import_state(self, path: str | Path) -> None:
        """Replaces the state by that of an exported file."""
        with open(path, "rb") as file:
            length = Path(path).stat().st_size
            self._open("POST", "/state/import", file, {"Content-Length": str(length)}).close()

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with self._open(method, path, data) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def _open(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        if self._process is None:
            raise SmaltError("smalt is not running")
        url = self.url("control") + path
        request = urllib.request.Request(url, body, dict(headers or {}), method=method)
        try:
            return _DIRECT.open(request, timeout=60)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            raise SmaltError(f"{method} {path}: {error.code} {text}") from None


# A proxy of the environment has no way to this machine's loopback.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Clock:
    """The clock of the services."""

    def __init__(self, smalt: Smalt) -> None:
        self._smalt = smalt

    def now(self) -> datetime:
        """The services' current time."""
        text = str(self._smalt._ask("GET", "/clock")["now"])
        seconds, fraction = text.rstrip("Z").split(".")
        moment = datetime.fromisoformat(seconds).replace(tzinfo=timezone.utc)
        return moment + timedelta(microseconds=int(fraction[:6]))

    def set(self, moment: datetime) -> None:
        """Sets the time. It cannot go below that of the last write."""
        utc = moment.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
        self._smalt._ask("PUT", "/clock", {"now": utc})

    def advance(self, **duration: float) -> None:
        """Advances the clock. The arguments are those of `timedelta`, such as `days=7`."""
        seconds = timedelta(**duration).total_seconds()
        self._smalt._ask("PUT", "/clock", {"advance_s": seconds})

    def freeze(self) -> None:
        """Stops time until `run`."""
        self._smalt._ask("PUT", "/clock", {"mode": "frozen"})

    def run(self) -> None:
        """Lets time run on."""
        self._smalt._ask("PUT", "/clock", {"mode": "running"})


class Faults:
    """Rules that make requests fail."""

    def __init__(self, smalt: Smalt) -> None:
        self._smalt = smalt

    def add(
        self,
        kind: str,
        *,
        operation: str = "*",
        resource: str = "",
        nth: int = 1,
        times: int = 1,
        **fault: object,
    ) -> None:
        """Adds a rule. `kind` and the further arguments are those of a fault of the control
        endpoint: `add("refuse", status=503, operation="Messages_Dequeue", times=2)`."""
        rule = {"operation": operation, "resource": resource, "nth": nth, "times": times}
        self._smalt._ask("POST", "/faults", {**rule, "fault": {"kind": kind, **fault}})

    def rules(self) -> list[dict[str, Any]]:
        """The rules, with how many calls each `seen` and how often it `fired`."""
        return list(self._smalt._ask("GET", "/faults"))

    def clear(self) -> list[dict[str, Any]]:
        """Removes all rules and returns what each did."""
        return list(self._smalt._ask("DELETE", "/faults"))


class Snapshots:
    """Named snapshots of the whole state."""

    def __init__(self, smalt: Smalt) -> None:
        self._smalt = smalt

    def save(self, name: str) -> None:
        """Saves the state under a name, and replaces an earlier one of this name."""
        self._smalt._ask("PUT", f"/state/snapshots/{name}")

    def load(self, name: str) -> None:
        """Replaces the state by a saved one."""
        self._smalt._ask("POST", f"/state/snapshots/{name}")

    def delete(self, name: str) -> None:
        """Deletes a saved state."""
        self._smalt._ask("DELETE", f"/state/snapshots/{name}")
