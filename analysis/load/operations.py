"""Operations under load: how many, how fast, how much, over a part of the load."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from wanlat.analysis.load.model import Estimate, Failures, Figures, Operation, Steady
from wanlat.analysis.load.resampling import percentile, ratio, summed

if TYPE_CHECKING:
    from wanlat.analysis.load.records import Records

MIN_N_FOR_P99 = 100


def operations_of(records: Records, steady: Steady, seed: int) -> tuple[Operation, ...]:
    """Each operation over the whole load, and over its steady part where there is one."""
    whole = (0.0, records.until_s)
    part = (steady.begin_s, steady.end_s)
    return tuple(
        Operation(
            operation=name,
            object_bytes=_object_bytes(records, name),
            steady=_figures(records, name, part, steady.bin_s, seed) if steady.is_steady else None,
            whole=_figures(records, name, whole, steady.bin_s, seed),
        )
        for name in records.operations
    )


def failures_of(records: Records) -> tuple[Failures, ...]:
    """Every way in which requests failed, the most frequent first; over ramp, load and what was
    still in flight at its end.
    """
    import numpy as np

    found = []
    for name in records.operations:
        mine = records.operation == name
        total = int(mine.sum())
        failed = mine & ~records.is_ok
        kinds = dict.fromkeys(zip(records.outcome[failed], records.error[failed], strict=True))
        for outcome, kind in kinds:
            these = failed & (records.outcome == outcome) & (records.error == kind)
            at_s = records.ended_s[these]
            found.append(
                Failures(
                    operation=name,
                    outcome=str(outcome),
                    kind=str(kind) or "no reason recorded",
                    count=int(np.count_nonzero(these)),
                    share=int(np.count_nonzero(these)) / total,
                    first_s=float(at_s.min()),
                    last_s=float(at_s.max()),
                )
            )
    return tuple(sorted(found, key=lambda each: (-each.count, each.operation, each.kind)))


def _figures(
    records: Records, name: str, span: tuple[float, float], bin_s: float, seed: int
) -> Figures:
    import numpy as np

    begin_s, end_s = span
    length_s = max(end_s - begin_s, 1e-9)
    mine = (records.operation == name) & (records.ended_s >= begin_s) & (records.ended_s < end_s)
    ok = mine & records.is_ok
    ended_s, ms = records.ended_s[ok], 1e3 * (records.ended_s - records.began_s)[ok]
    count = max(1, int(length_s / bin_s + 1e-9))
    # What is left of a bin at the end belongs to the last one.
    bins = np.minimum(((ended_s - begin_s) / bin_s).astype(int), count - 1)
    widths_s = np.full(count, bin_s)
    widths_s[-1] = length_s - (count - 1) * bin_s
    per_bin = np.bincount(bins, minlength=count).astype(float)
    mine_seed = [abs(seed), zlib.crc32("\0".join((*records.series, name)).encode())]
    per_s = ratio(per_bin, widths_s, mine_seed) or Estimate(0.0, None)
    due_ms = 1e3 * (records.ended_s - records.due_s)[ok]
    due_ms = due_ms[~np.isnan(due_ms)]

    def at(percent: float) -> Estimate | None:
        return percentile(ms, bins, count, percent, [*mine_seed, round(10 * percent)])

    moved = float(records.bytes[ok].sum())
    return Figures(
        begin_s=begin_s,
        end_s=end_s,
        ok=int(ms.size),
        fail=int((mine & (records.outcome == "fail")).sum()),
        unknown=int((mine & (records.outcome == "unknown")).sum()),
        bytes=round(moved),
        per_s=per_s,
        bytes_per_s=moved / length_s,
        mean_ms=ratio(summed(bins, ms, count), per_bin, mine_seed),
        p50_ms=at(50),
        p95_ms=at(95),
        p99_ms=at(99) if ms.size >= MIN_N_FOR_P99 else None,
        max_ms=float(ms.max()) if ms.size else None,
        from_due_ms=_from_due(due_ms),
    )


def _from_due(due_ms: object) -> tuple[float, float, float] | None:
    import numpy as np

    values = np.asarray(due_ms, dtype=np.float64)
    if values.size == 0:
        return None
    median, p99 = (float(value) for value in np.percentile(values, [50, 99]))
    return float(values.mean()), median, p99


def _object_bytes(records: Records, name: str) -> int | None:
    import numpy as np

    sizes = np.unique(records.bytes[(records.operation == name) & records.is_ok])
    return int(sizes[0]) if sizes.size == 1 else None
