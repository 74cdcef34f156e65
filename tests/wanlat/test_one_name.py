"""Everything is imported as ``wanlat.ROOM``: a user's own ``analysis.py`` never meets ours."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
ROOMS = ("topologies", "bundle", "emulator", "systems", "probes", "experiments", "analysis")
PYTHON = ("wanlat", *ROOMS, "tests", "benchmarks", "examples")
# `from emulator.lab import Lab`, `import analysis`, `-m topologies.export`: in documents, in
# programs that are strings, in scripts.
FLAT = re.compile(rf"(?:\bfrom|\bimport|-m\b[\"', ]*)\s+(?:{'|'.join(ROOMS)})\b(?=[.\s]|$)", re.M)


def python_files() -> Iterator[Path]:
    for room in PYTHON:
        for path in sorted((CHECKOUT / room).rglob("*.py")):
            # wanlat/ROOM is a link to ROOM, which is looked at by itself
            if room != "wanlat" or path.relative_to(CHECKOUT / room).parts[0] not in ROOMS:
                yield path


def flat_imports(source: str) -> set[str]:
    """The rooms that a program imports by a flat name."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.append(node.module or "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names += [found.split()[-1] for found in FLAT.findall(node.value)]
    return {name for name in names if name.partition(".")[0] in ROOMS}


@pytest.mark.parametrize(
    "source",
    [
        "import analysis.report",
        "from emulator.lab import Lab",
        "def late():\n    from topologies import load",
        "program = 'import sys\\nfrom probes.plan import Request'",
        "command = 'python -m experiments.study'",
    ],
)
def test_a_flat_import_is_seen(source: str) -> None:
    assert flat_imports(source)


def test_no_python_file_imports_a_room_by_a_flat_name() -> None:
    files = list(python_files())
    assert len(files) > 300
    own = Path(__file__)
    found = {
        str(path.relative_to(CHECKOUT)): flat
        for path in files
        if path != own and (flat := flat_imports(path.read_text(encoding="utf-8")))
    }
    assert not found


def is_page(name: str) -> bool:
    """Tell whether a file may have Python or commands in it, for people or for programs."""
    return name.endswith((".md", ".toml", ".sh")) or name.startswith((".ci/", "tools/", "Makefile"))


def test_no_document_or_script_does() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    names = [name for name in tracked.stdout.split() if is_page(name)]
    pages = [CHECKOUT / name for name in names]
    assert len(pages) > 60
    told = {
        str(page.relative_to(CHECKOUT)): found
        for page in pages
        if (found := FLAT.findall(page.read_text(encoding="utf-8")))
    }
    assert not told


def test_every_room_is_linked_into_the_package() -> None:
    for room in (*ROOMS, "proto"):
        link = CHECKOUT / "wanlat" / room
        assert link.is_symlink() and link.resolve() == CHECKOUT / room
