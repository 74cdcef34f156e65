"""Where the documentation has more on an error than its message has room for."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "fix-it.md"
_ENTRY = re.compile(r"^### (.*)\n\n((?:> .*\n)+)", re.MULTILINE)
"""A heading, and the words of the messages that it is about: each on a line of its own."""


def place_of(message: str) -> str | None:
    """Return the section of the page that is about a message; None: none is, or no page is here.

    The page is in a checkout and not in a wheel.
    """
    if not PAGE.is_file():
        return None
    fitting = [
        (message.index(words), heading)
        for heading, quoted in _ENTRY.findall(PAGE.read_text("utf-8"))
        for words in re.findall(r"> (.*)", quoted)
        if words in message
    ]
    if not fitting:
        return None
    # What comes first is the error; what it quotes, a log or an answer, may have words of others.
    anchor = re.sub(r"[^\w\- ]", "", min(fitting)[1].lower()).replace(" ", "-")
    return f"{PAGE}#{anchor}"
