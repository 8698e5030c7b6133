"""What `smalt.testing` promises beyond the examples of docs/testing-in-other-languages.md."""

import os
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from smalt.testing import Smalt, SmaltError


def names(smalt):
    service = BlobServiceClient.from_connection_string(smalt.connection_string)
    return [container.name for container in service.list_containers()]


def create(smalt, name):
    BlobServiceClient.from_connection_string(smalt.connection_string).create_container(name)


def test_two_run_side_by_side():
    with Smalt() as one, Smalt() as other:
        create(one, "here")
        assert names(one) == ["here"]
        assert names(other) == []


def test_the_clock_is_set_and_frozen_and_reset(smalt):
    create(smalt, "before")
    moment = datetime(2100, 1, 1, tzinfo=timezone.utc)
    smalt.clock.freeze()
    smalt.clock.set(moment)
    assert smalt.clock.now() == moment
    smalt.clock.advance(milliseconds=1500)
    assert smalt.clock.now() == moment + timedelta(seconds=1.5)
    smalt.clock.run()
    smalt.reset()
    assert abs(smalt.clock.now() - datetime.now(timezone.utc)) < timedelta(minutes=1)


def test_state_goes_from_one_to_another(smalt, tmp_path):
    create(smalt, "exported")
    smalt.export_state(tmp_path / "state.tar")
    with Smalt() as other:
        other.import_state(tmp_path / "state.tar")
        assert names(other) == ["exported"]


def test_data_survives_a_restart(tmp_path):
    with Smalt(location=tmp_path / "data") as smalt:
        create(smalt, "kept")
    with Smalt(location=tmp_path / "data") as smalt:
        assert names(smalt) == ["kept"]


def test_accounts_and_a_seed(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.txt").write_text("x")
    with Smalt(seed=tmp_path, accounts={"mine": "c2VjcmV0"}) as smalt:
        assert smalt.account == "mine"
        assert smalt.url("blob").endswith("/mine")
        assert names(smalt) == ["photos"]


def test_what_is_wrong_is_said(smalt):
    with pytest.raises(SmaltError, match="unknown-flag"):
        Smalt(arguments=["--unknown-flag"]).start()
    with pytest.raises(SmaltError, match="400"):
        smalt.faults.add("no-such-kind")
    with pytest.raises(SmaltError, match="404"):
        smalt.snapshots.load("no-such-snapshot")
    with pytest.raises(SmaltError, match="not running"):
        Smalt().reset()


def test_it_ends_with_a_process_that_is_killed(tmp_path):
    code = (
        "import sys, time; from smalt.testing import Smalt; s = Smalt().start();"
        "print(s._process.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/stat").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{pid}").exists()
