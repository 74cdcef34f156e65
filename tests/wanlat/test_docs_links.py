"""Every link of every page leads somewhere: files, pictures, and headings of other pages."""

from __future__ import annotations

import re
from pathlib import Path

from tests.command_line import CHECKOUT, tracked

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The names of its headings, as code hosts make them."""
    named = set()
    for heading in _HEADING.findall(page.read_text("utf-8")):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
        named.add(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    return named


def broken(page: Path) -> list[str]:
    found = []
    for target in _LINK.findall(page.read_text("utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        to = (page.parent / path).resolve() if path else page
        if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors(to)):
            found.append(f"{page.relative_to(CHECKOUT)}: {target}")
    return found


def test_every_link_leads_somewhere() -> None:
    all_of_them = tracked("*.md")
    assert len(all_of_them) > 40
    assert [link for page in all_of_them for link in broken(page)] == []
