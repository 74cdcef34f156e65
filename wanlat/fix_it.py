"""Where the documentation has more on an error than its message has room for."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "fix-it.md"
_ENTRY = re.compile(r"^### (.*)\n\n> (.*)$", re.MULTILINE)
"""A heading, and the words of the message that it is about."""


def place_of(message: str) -> str | None:
    """Return the section of the page that is about a message; None: none is, or no page is here.

    The page is in a checkout and not in a wheel.
    """
    if not PAGE.is_file():
        return None
    entries = _ENTRY.findall(PAGE.read_text("utf-8"))
    fitting = [(len(words), heading) for heading, words in entries if words in message]
    if not fitting:
        return None
    anchor = re.sub(r"[^\w\- ]", "", max(fitting)[1].lower()).replace(" ", "-")
    return f"{PAGE}#{anchor}"
