"""Adds the facts of the project and its programs to the wheel.

    hatchling build --target wheel --directory build/packages/pypi

The wheel contains programs for one platform and works with every Python version.
"""

import sys
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import facts  # noqa: E402


class Facts(MetadataHookInterface):
    PLUGIN_NAME = "custom"

    def update(self, metadata: dict) -> None:
        metadata["version"] = facts.VERSION
        metadata["description"] = facts.description()
        metadata["license"] = facts.LICENCE


class Programs(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict) -> None:
        platform = facts.PLATFORM.wheel
        if "{glibc}" in platform:
            platform = platform.format(glibc=facts.glibc())
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        for program in facts.PROGRAMS:
            build_data["shared_scripts"][str(facts.BIN / program)] = program
        for name in facts.LICENCE_FILES:
            build_data["extra_metadata"][str(facts.ROOT / name)] = name
