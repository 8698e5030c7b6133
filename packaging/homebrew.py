"""Writes the Homebrew formula for the platforms whose npm packages are in build/packages/npm.

    python3 packaging/npm.py && python3 packaging/homebrew.py
"""

import hashlib
import json
from pathlib import Path

import facts

REGISTRY = "https://registry.npmjs.org"
SYSTEMS = {"linux": "on_linux", "apple": "on_macos"}
PROCESSORS = {"amd64": "on_intel", "arm64": "on_arm"}


def platform(target: str, archive: Path) -> str:
    """Returns the block of one target."""
    system = next(block for name, block in SYSTEMS.items() if name in target)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return f"""\
  {system} do
    {PROCESSORS[facts.PLATFORMS[target].arch]} do
      url "{REGISTRY}/@smalt/{target}/-/{target}-{facts.VERSION}.tgz"
      sha256 "{digest}"
    end
  end"""


def main() -> None:
    # Homebrew on Linux brings its own glibc.
    archives = {
        target: facts.OUT / "npm" / f"smalt-{target}-{facts.VERSION}.tgz"
        for target in facts.PLATFORMS
        if not target.endswith("musl")
    }
    words = {
        "DESCRIPTION": facts.description().rstrip("."),
        "VERSION": facts.VERSION,
        "LICENCES": json.dumps(facts.LICENCE.split(" OR ")),
        "PLATFORMS": "\n\n".join(
            platform(target, archive) for target, archive in archives.items() if archive.exists()
        ),
    }
    formula = (facts.ROOT / "packaging/homebrew/smalt.rb").read_text()
    formula = formula.partition("\n")[2]
    for word, text in words.items():
        formula = formula.replace(word, text)
    folder = facts.OUT / "homebrew"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "smalt.rb").write_text(formula)


if __name__ == "__main__":
    main()
