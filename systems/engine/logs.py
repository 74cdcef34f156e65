"""What a program printed, as an error message quotes it."""

from __future__ import annotations

import re
from pathlib import Path

_LINES = 12
_BYTES = 16_384
_WIDTH = 400


def last_lines(log: Path, lines: int = _LINES) -> str:
    """Return the last lines of a log, indented; says so when there are none."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError as error:
        return f"  (the log cannot be read: {error.strerror})"
    kept = [line.rstrip()[:_WIDTH] for line in plain(text).splitlines() if line.strip()][-lines:]
    return "\n".join(f"  {line}" for line in kept) if kept else "  (nothing was logged)"


def plain(text: str) -> str:
    """Return a text without the escape sequences that colour or move on a terminal."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
