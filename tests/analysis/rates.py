"""The figures of rates in a summary.json, multiplied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

ROUNDED = 2e-8
"""Figures of a summary are rounded to nine digits."""


def multiply(entry: dict[str, Any]) -> bool:
    """Multiply an entry of single requests, or of a load, and compare; False of any other."""
    per_s = entry.get("requests_per_s", entry.get("operations_per_s"))
    mean_ms, bytes_per_s = entry.get("mean_ms"), entry.get("bytes_per_s")
    if per_s is None or mean_ms is None or bytes_per_s is None:
        return False
    in_flight = entry.get("in_flight", 1.0)
    # A mean is rounded to the nanosecond.
    assert mean_ms / 1e3 * per_s == pytest.approx(in_flight, rel=ROUNDED + 5e-7 / mean_ms)
    if size := entry.get("object_bytes"):  # of several sizes there is none
        assert size * per_s == pytest.approx(bytes_per_s, rel=ROUNDED)
    return True


def entries_in(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in a document."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from entries_in(inner)
