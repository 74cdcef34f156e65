"""needed_glibc.py WHEEL VERSION: fails where a program in it needs a later glibc than that."""

from __future__ import annotations

import io
import sys
import zipfile

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection


def needed(program: bytes) -> tuple[int, ...]:
    """Return the latest version of glibc that a program needs."""
    sections = ELFFile(io.BytesIO(program)).iter_sections()
    names = [
        each.name.removeprefix("GLIBC_")
        for section in sections
        if isinstance(section, GNUVerNeedSection)
        for _, versions in section.iter_versions()
        for each in versions
        if each.name.startswith("GLIBC_")
    ]
    return max((tuple(map(int, name.split("."))) for name in names), default=(0,))


def main(wheel: str, glibc: str) -> None:
    """Say what each program needs. Exits with 1 where that is too much."""
    allowed = tuple(map(int, glibc.split(".")))
    archive = zipfile.ZipFile(wheel)
    programs = [name for name in archive.namelist() if name.startswith("wanlat/bin/")]
    latest = {name: needed(archive.read(name)) for name in programs}
    for name, version in latest.items():
        print(f"{name}: glibc {'.'.join(map(str, version))}")
    if not latest or max(latest.values()) > allowed:
        sys.exit(f"{wheel} needs a later glibc than {glibc}, which its tag says.")


if __name__ == "__main__":
    main(*sys.argv[1:])
