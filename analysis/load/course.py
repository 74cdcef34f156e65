"""The course of a load over time, for charts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wanlat.analysis.load.model import Course, Steady

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wanlat.analysis.load.records import Records

    Values = NDArray[np.float64]

_MOST_BINS = 300


def course_of(
    records: Records, steady: Steady, quiet_ms: dict[tuple[str, str], tuple[Values, Values]]
) -> Course:
    """Rates per bin from the load's begin to its end; latencies of the part figures are of."""
    import numpy as np

    bin_s = steady.bin_s
    while records.until_s / bin_s > _MOST_BINS:
        bin_s *= 2
    count = max(1, int(records.until_s / bin_s + 1e-9))
    inside = (records.ended_s >= 0) & (records.ended_s < count * bin_s)

    def per_s(which: NDArray[np.bool_]) -> Values:
        places = (records.ended_s[which & inside] / bin_s).astype(int)
        return np.bincount(places, minlength=count).astype(float) / bin_s

    ok = records.is_ok
    span = (steady.begin_s, steady.end_s) if steady.is_steady else (0.0, records.until_s)
    counted = ok & (records.ended_s >= span[0]) & (records.ended_s < span[1])
    lasted_ms = 1e3 * (records.ended_s - records.began_s)
    return Course(
        bin_s=bin_s,
        per_s={name: per_s(ok & (records.operation == name)) for name in records.operations},
        failed_per_s=per_s(~ok),
        latencies_ms={
            name: np.sort(lasted_ms[counted & (records.operation == name)])
            for name in records.operations
        },
        quiet_ms=quiet_ms,
    )
