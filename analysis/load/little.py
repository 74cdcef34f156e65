"""Little's law as a check of the records: are the workers that were asked for accounted for?

L = lambda W (Little 1961): on average as many requests are in flight as begin a second times as
long as they take. What is in flight, and the workers that are between two requests, are together
the workers of the study: a number that is not in the records. Records that were lost, latencies in
a wrong unit, a worker that hung, a clock that jumped: each breaks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wanlat.analysis.load.model import LittlesLaw

if TYPE_CHECKING:
    from wanlat.analysis.load.records import Records

TOLERANCE = 0.02
"""Of the workers; ends of the load, where requests are cut by it, explain no more."""
_OVERLAP_S = 1e-6
"""Clocks of two records are read one after the other: less is no overlap."""


def littles_law(records: Records) -> LittlesLaw | None:
    """The check, over the whole load; None where it is not known how many workers there were."""
    import numpy as np

    workers, until_s = records.settings.workers, records.until_s
    if not workers or until_s <= 0:
        return None
    began = np.clip(records.began_s, 0, until_s)
    ended = np.clip(records.ended_s, 0, until_s)
    inside = (records.ended_s >= 0) & (records.ended_s < until_s)
    per_s = inside.sum() / until_s
    mean_s = float((records.ended_s - records.began_s)[inside].mean()) if inside.any() else 0.0
    in_flight = float(per_s * mean_s)
    gaps_s, pauses, overlaps, ends_s = 0.0, 0, 0, 0.0
    for worker in np.unique(records.worker):
        mine = np.flatnonzero(records.worker == worker)
        mine = mine[np.argsort(records.began_s[mine], kind="stable")]
        exact = records.began_s[mine][1:] - records.ended_s[mine][:-1]
        overlaps += int((exact < -_OVERLAP_S).sum())
        between = began[mine][1:] - ended[mine][:-1]
        gaps_s += float(np.maximum(between, 0).sum())
        pauses += int(exact.size)
        # Cut by the load's begin or end: in flight, and no whole request.
        whole = inside[mine]
        ends_s += float((ended[mine] - began[mine])[~whole].sum())
        early = float((records.began_s[mine][whole] < 0) @ -records.began_s[mine][whole])
        ends_s -= early
    return LittlesLaw(
        workers=workers,
        in_flight=in_flight,
        between=gaps_s / until_s,
        missing=workers - in_flight - (gaps_s + ends_s) / until_s,
        tolerance=max(0.1, TOLERANCE * workers),
        overlaps=overlaps,
        gap_ms=1e3 * gaps_s / pauses if pauses else 0.0,
    )
