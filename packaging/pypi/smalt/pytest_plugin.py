"""The pytest fixtures of smalt. Installing the package is all that is needed:

    def test_upload(smalt):
        blobs = BlobServiceClient.from_connection_string(smalt.connection_string)

`smalt` gives each test an empty account: it resets a server that all tests of a process share.
With pytest-xdist each worker has its own. To start it otherwise, define the fixture
`smalt_options` of the scope `session` in your conftest.py; it returns the arguments of `Smalt`.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from smalt.testing import Smalt


@pytest.fixture(scope="session")
def smalt_options() -> dict[str, Any]:
    """The arguments of `Smalt` for `smalt_server`."""
    return {}


@pytest.fixture(scope="session")
def smalt_server(smalt_options: dict[str, Any]) -> Iterator[Smalt]:
    """A smalt that runs as long as the tests."""
    with Smalt(**smalt_options) as server:
        yield server


@pytest.fixture
def smalt(smalt_server: Smalt) -> Smalt:
    """The same smalt, in the state after its start, on a running clock and without fault rules."""
    smalt_server.faults.clear()
    smalt_server.reset()
    smalt_server.clock.run()
    return smalt_server
