"""Everything is imported as ``wanlat.ROOM``: a user's own ``analysis.py`` never meets ours; and of
the rooms above the emulator no module is imported, by way of others, by what it imports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from tests.command_line import CHECKOUT, tracked

ROOMS = ("topologies", "bundle", "emulator", "systems", "probes", "experiments", "analysis")
# `from emulator.lab import Lab`, `import analysis`, `-m topologies.export`: in programs, in strings
# that are programs, in documents, in scripts.
_ROOM = rf"(?:{'|'.join(ROOMS)})(?:\.\w+)*(?=[^\w.]|$)"
FLAT = re.compile(
    rf"(?:\b|\\n)from\s+{_ROOM}\s+import\b|^\s*import\s+{_ROOM}|-m\b[\"', ]*\s+{_ROOM}", re.M
)
SCRIPTS = (".ci/", "tools/", "Makefile")
OWN, WHEEL = "tests/wanlat/test_one_name.py", "tests/wanlat/test_wheel.py"


def test_nothing_imports_a_room_by_a_flat_name() -> None:
    pages = tracked("*.py", "*.md", "*.toml", "*.sh", *SCRIPTS)
    own = (CHECKOUT / OWN, CHECKOUT / WHEEL)
    texts = {page: page.read_text("utf-8") for page in pages if page.is_file() and page not in own}
    assert len(texts) > 60
    found = {str(page): flat for page, text in texts.items() if (flat := FLAT.findall(text))}
    assert not found


def test_every_room_is_linked_into_the_package() -> None:
    for room in (*ROOMS, "proto"):
        link = CHECKOUT / "wanlat" / room
        assert link.is_symlink() and link.resolve() == CHECKOUT / room


def test_nothing_is_imported_by_what_it_imports() -> None:
    """Imports inside functions and under TYPE_CHECKING included: they only hide a circle."""
    rooms = ("bundle", "probes", "experiments", "analysis", "wanlat/commands", "wanlat/testing")
    paths = [path for room in rooms for path in (CHECKOUT / room).rglob("*.py")]
    paths += [path for path in (CHECKOUT / "wanlat").glob("*.py") if path.name != "__init__.py"]
    modules = {module_of(path): path for path in paths}
    assert len(modules) > 150
    graph = {
        name: {each for each in imported(ast.parse(path.read_text())) if each in modules} - {name}
        for name, path in modules.items()
    }
    TopologicalSorter(graph).prepare()  # CycleError names the circle


def module_of(path: Path) -> str:
    parts = path.relative_to(CHECKOUT).with_suffix("").parts
    return ".".join(("wanlat", *parts) if parts[0] != "wanlat" else parts).removesuffix(".__init__")


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
