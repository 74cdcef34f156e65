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
    delay = str(Duration(impairment.delay_ns))
    if impairment.jitter_ns:
        delay += f" ± {Duration(impairment.jitter_ns)}"
        if impairment.distribution != "uniform":
            delay += f" {impairment.distribution}"
    loss, in_bursts = impairment.loss_probability, " in bursts" if impairment.bursts else ""
    parts = {
        "cut (loss 100%)": loss >= 1,
        delay: impairment.delay_ns or impairment.jitter_ns,
        "reorder": impairment.reorder,
        f"reorder {_part(impairment.overtake)}": impairment.overtake,
        f"loss {_part(loss)}{in_bursts}": 0 < loss < 1,
        f"duplicate {_part(impairment.duplicate)}": impairment.duplicate,
        f"corrupt {_part(impairment.corrupt)}": impairment.corrupt,
        f"rate {Rate(impairment.rate_bps or 1)}": impairment.rate_bps is not None,
        f"queue {Size(impairment.queue_bytes or 0)}": impairment.queue_bytes is not None,
    }
    return ", ".join(part for part, is_there in parts.items() if is_there) or "nothing"


def _part(value: float) -> str:
    """Return a fraction in percent, short enough to read: of LAN links they are roots."""
    return str(Fraction(float(f"{value:.4g}")))
