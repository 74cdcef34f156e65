"""Before anything is measured on an emulated network: is it the one that was asked for?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from emulator.calibration import calibrate, pairs_of
from emulator.lab import Lab

_PAIRS = 30
_SAMPLES = 200
_JITTER_SAMPLES = 120


def prove(lab: Lab, tell: Callable[[str, float, float], None]) -> dict[str, Any] | None:
    """Return the document of a quick calibration; None where there is no path to measure.

    ``tell`` gets what is being done, how much of it is, and of how much.
    """
    pairs = pairs_of(lab.plan, _PAIRS)
    if not pairs:
        return None
    return calibrate(
        lab,
        pairs=pairs,
        samples=_SAMPLES,
        jitter_samples=_JITTER_SAMPLES,
        on_progress=lambda stage, part: tell(f"calibrating ({stage})", round(part * 100), 100),
    )


def what_is_off(document: Mapping[str, Any], topology: str) -> str:
    """Return why nothing is measured on a network, by the document of its calibration."""
    failed = [pair for pair in document["pairs"] if pair["verdict"] != "pass"]
    first = [f"{pair['from']} → {pair['to']}: {'; '.join(pair['reasons'])}" for pair in failed[:3]]
    more = f", and {len(failed) - 3} more" if len(failed) > 3 else ""
    dropped = f" {document['overflows']} packets were dropped." if document["overflows"] else ""
    return (
        f"The emulated network is not what {topology} asks for, so nothing was measured on it: "
        f"{len(failed)} of {len(document['pairs'])} pairs are off ({' | '.join(first)}{more})."
        f"{dropped} A busy machine does that: end what else runs on it and try again; "
        f"`wanlat calibrate {topology}` shows every pair."
    )
