"""An impairment as people read it, and as figures for scripts."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import asdict, fields
from typing import Any

from wanlat.topologies.resolve import Impairment
from wanlat.topologies.units import Duration, Fraction, Rate, Size

_NOTHING = Impairment()


def figures(impairment: Impairment) -> dict[str, Any]:
    """Return what differs from no impairment, by the names and units of its fields.

    A table of quantiles is too long for a line: it is told by its length and a hash.
    """
    result: dict[str, Any] = {}
    for each in fields(Impairment):
        value = getattr(impairment, each.name)
        if value == getattr(_NOTHING, each.name):
            continue
        if each.name == "table":
            packed = struct.pack(f"!{len(value)}d", *value)
            value = {"quantiles": len(value), "sha256": hashlib.sha256(packed).hexdigest()}
        elif each.name == "bursts":
            value = asdict(value)
        result[each.name] = value
    return result


def words(impairment: Impairment) -> str:
    """Return one line: `50ms ± 10ms, loss 5%`."""
    return ", ".join(_parts(impairment)) or "nothing"


def _parts(impairment: Impairment) -> list[str]:
    parts = []
    if impairment.loss_probability >= 1:
        parts.append("cut (loss 100%)")
    if impairment.delay_ns or impairment.jitter_ns:
        text = str(Duration(impairment.delay_ns))
        if impairment.jitter_ns:
            text += f" ± {Duration(impairment.jitter_ns)}"
            if impairment.distribution != "uniform":
                text += f" {impairment.distribution}"
        parts.append(text)
    if impairment.correlation:
        parts.append(f"correlation {_part(impairment.correlation)}")
    if impairment.reorder:
        parts.append("reorder")
    if impairment.overtake:
        parts.append(f"reorder {_part(impairment.overtake)}")
    if 0 < impairment.loss_probability < 1:
        in_bursts = " in bursts" if impairment.bursts else ""
        parts.append(f"loss {_part(impairment.loss_probability)}{in_bursts}")
    if impairment.duplicate:
        parts.append(f"duplicate {_part(impairment.duplicate)}")
    if impairment.corrupt:
        parts.append(f"corrupt {_part(impairment.corrupt)}")
    if impairment.rate_bps is not None:
        parts.append(f"rate {Rate(impairment.rate_bps)}")
    if impairment.queue_bytes is not None:
        parts.append(f"queue {Size(impairment.queue_bytes)}")
    return parts


def _part(value: float) -> str:
    """Return a fraction in percent, short enough to read: of LAN links they are roots."""
    return str(Fraction(float(f"{value:.4g}")))
