"""A local Azure Storage. This package installs its programs; `program` returns their paths."""

import sysconfig
from collections.abc import Iterator
from pathlib import Path

__all__ = ["program"]


def program(name: str = "smalt") -> Path:
    """Returns the path of `smalt`, `smalt-sweeper` or `smalt-listener`.

    Raises FileNotFoundError if the programs were not installed with this package.
    """
    tried = []
    for folder in _folders():
        path = folder / name
        if path.is_file():
            return path
        tried.append(str(path))
    raise FileNotFoundError(f"cannot find {name}: tried {', '.join(tried)}")


def _folders() -> Iterator[Path]:
    """Yields the folders where installers put the programs of a package."""
    yield Path(sysconfig.get_path("scripts"))
    yield Path(sysconfig.get_path("scripts", scheme=sysconfig.get_preferred_scheme("user")))
    site = Path(__file__).resolve().parent.parent
    # `pip install --target FOLDER`.
    yield site / "bin"
    # An environment other than that of this interpreter: PREFIX/lib/python3.x/site-packages.
    yield from (prefix / "bin" for prefix in site.parents[2:3])
