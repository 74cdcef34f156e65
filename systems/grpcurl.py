"""grpcurl: the command-line client for gRPC, independent of wanlat's own. A tool, not a store."""

from __future__ import annotations

import re
from pathlib import Path

from wanlat.systems.binary import Binary, from_cache, from_path, from_setting, said
from wanlat.systems.errors import SystemMissing
from wanlat.systems.gobuildinfo import main_module_version
from wanlat.systems.recipe import GoInstall

NAME = "grpcurl"
TITLE = "grpcurl"
ORIGIN = "made by FullStory, from its Go module; a client to check with, not a store"


def read_version(binary: Path) -> str:
    """Return the module version, such as ``v1.9.4``.

    One that was built by `go install` knows it from the Go linker alone; a release says
    ``grpcurl v1.9.3`` when asked, on stderr.
    """
    version = main_module_version(binary)
    if version and version != "(devel)":
        return version
    printed, complained = said(binary, "-version")
    found = re.search(r"^grpcurl (\S+)", complained + printed, re.MULTILINE)
    if found is None:
        raise SystemMissing(
            f"{binary} does not look like grpcurl: its version is {printed[:80]!r}."
        )
    return found[1]


RECIPE = GoInstall(
    name=NAME,
    version="v1.9.4",
    binary="grpcurl",
    read_version=read_version,
    minutes=1,
    disk_bytes=300_000_000,
    module="github.com/fullstorydev/grpcurl/cmd/grpcurl",
)


def find() -> Binary:
    """Return the one that the environment names, else the one on PATH, else the installed one.

    Raises SystemMissing, MachineError when the installed one was changed.
    """
    named = from_setting(NAME, read_version) or from_path(NAME, read_version)
    return named or from_cache(RECIPE)


def find_grpcurl() -> Path | None:
    """Return where grpcurl is on this machine, None when it is not."""
    try:
        return find().path
    except SystemMissing:
        return None
