"""The module version that the Go linker wrote into a binary.

A binary made by plain `go install` often says "development" when asked; the linker's record says
which version of which module it was made from. Format: src/debug/buildinfo in Go's source.
"""

from __future__ import annotations

import mmap
from pathlib import Path

_MAGIC = b"\xff Go buildinf:"
_ALIGNED_TO = 16
_HEADER_BYTES = 32
_STRINGS_INLINE = 2  # flag, since Go 1.18


def main_module_version(path: Path) -> str | None:
    """Return the version of the main module, such as ``v1.2.3``; None when there is no record."""
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file
            return None
        with data:
            at = data.find(_MAGIC)
            while at != -1 and at % _ALIGNED_TO:
                at = data.find(_MAGIC, at + 1)
            if at == -1 or not data[at + len(_MAGIC) + 1] & _STRINGS_INLINE:
                return None
            _, after = _string(data, at + _HEADER_BYTES)
            record, _ = _string(data, after)
    # The record stands between two sentinels of 16 bytes.
    for line in record[16:-16].decode("utf-8", "replace").splitlines():
        fields = line.split("\t")
        if fields[0] == "mod" and len(fields) > 2:
            return fields[2]
    return None


def _string(data: mmap.mmap, at: int) -> tuple[bytes, int]:
    """Return a string with its length in front (a varint), and the offset behind it."""
    length = shift = 0
    while True:
        byte = data[at]
        at += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return data[at : at + length], at + length
