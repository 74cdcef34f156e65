"""Everything is imported as ``wanlat.ROOM``: a user's own ``analysis.py`` never meets ours."""

from __future__ import annotations

import re

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
