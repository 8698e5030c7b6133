"""A local Azure Storage. The programs come with this package; `program` says where they are."""

import sysconfig
from collections.abc import Iterator
from pathlib import Path

__all__ = ["program"]


def program(name: str = "smalt") -> Path:
    """Returns the path of `smalt`, `smalt-sweeper` or `smalt-listener`.

    Raises FileNotFoundError when the package was installed without its programs.
    """
    tried = []
    for folder in _folders():
        path = folder / name
        if path.is_file():
            return path
        tried.append(str(path))
    raise FileNotFoundError(f"{name} is not installed beside this package; tried {', '.join(tried)}")


def _folders() -> Iterator[Path]:
    """Where an installer may have put the programs of this package."""
    yield Path(sysconfig.get_path("scripts"))
    yield Path(sysconfig.get_path("scripts", scheme=sysconfig.get_preferred_scheme("user")))
    site = Path(__file__).resolve().parent.parent
    # `pip install --target FOLDER`.
    yield site / "bin"
    # PREFIX/lib/python3.x/site-packages, where PREFIX is not that of this interpreter.
    yield from (prefix / "bin" for prefix in site.parents[2:3])
