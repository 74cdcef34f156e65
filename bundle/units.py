"""Sizes and numbers as studies write them, for those that read bundles alone."""

from __future__ import annotations

from typing import Any

from wanlat.topologies.units import QuantityError, Size

__all__ = ["Size", "bytes_of", "number_of"]


def bytes_of(value: Any) -> int | None:
    """A size as studies write it, in bytes: 1024, "50KiB", "1MB"; None for what is no size."""
    try:
        return Size.parse(value).bytes
    except QuantityError:
        return None


def number_of(value: Any) -> float | None:
    """`value` of a parameter as a number to draw against: sizes in bytes; None for words."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    size = bytes_of(value)
    return None if size is None else float(size)
