"""What the drill's YAML, kept in the manifest, says of times and parts: "250ms", "90%".

The drill was checked when it was started, so whatever cannot be read here is simply not known.
"""

from __future__ import annotations

import re

_NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
_DURATION = re.compile(_NUMBER + r" ?(ns|us|ms|s|m|min|h)")
_PART = re.compile(_NUMBER + r"( ?%)?")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds(value: object) -> float | None:
    """The length of a time, seconds: of "250ms" 0.25; a bare number is seconds already."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[1]) * _SECONDS[match[2]] if match else None


def part(value: object) -> float | None:
    """A part of a whole, 0 to 1: of "90%" 0.9."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _PART.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    return float(match[1]) / 100 if match[2] else float(match[1])
