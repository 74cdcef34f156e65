"""Is there a steady state, and where does it begin?

Three steps. What is watched is put into bins of time. The transient at the begin is cut off where
what remains has the smallest standard error (MSER; White 1997, Simulation 69), at most half of the
load. What remains is steady if it can be shown to move by less than TOLERANCE: by a line, and by
curvature, whose 95 % intervals must both lie within. That is an equivalence test: noise that hides
a drift makes no steady state, and neither does a load that is too short. docs/load-report.md.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from wanlat.analysis.load.model import Estimate, Steady, Verdict
from wanlat.analysis.load.resampling import block_length, regression_errors, summed
from wanlat.analysis.load.wording import percent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wanlat.analysis.load.records import Records

    Values = NDArray[np.float64]

TOLERANCE = 0.10
"""What moves by less, from the part's begin to its end, is called steady."""
RULE = (
    "the transient is cut off by MSER, at most half of the load; what is left is steady if the "
    "95 % intervals of its linear change and of its curvature lie within 10 % of its mean"
)
MOST_BINS = 600
MIN_BINS = 30
"""Of fewer nothing is said."""
MIN_PER_BIN = 20
"""Requests a bin, on average: with fewer the counts are mostly noise."""
_WIDTHS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_MOST_CUT = 0.5
_BATCHES = 120


def steady_of(records: Records, seed: int) -> Steady:
    """Whether the load of `records` came to a steady state."""
    import numpy as np

    watched = "latency" if records.settings.rate is not None else "rate"
    bin_s = bin_width_s(records)
    ended = records.ended_s[records.is_ok]
    count = int(records.until_s / bin_s + 1e-9)
    place = np.floor(ended / bin_s)
    inside = (place >= 0) & (place < count)
    bins = place[inside].astype(int)
    per_bin = np.bincount(bins, minlength=count).astype(float)
    if watched == "rate":
        series = per_bin / bin_s
    else:
        since = np.where(np.isnan(records.due_s), records.began_s, records.due_s)
        lasted = (records.ended_s - since)[records.is_ok][inside]
        sums = summed(bins, lasted, count)
        # Nothing came in that bin: what took long is counted where it ended.
        series = np.divide(sums, per_bin, out=np.zeros(count), where=per_bin > 0)
    mine = [abs(seed), zlib.crc32("\0".join((*records.series, "steady")).encode())]
    return judge(series, bin_s, mine, watched)


def bin_width_s(records: Records) -> float:
    """Seconds of a bin: as short as MOST_BINS and MIN_PER_BIN allow."""
    per_s = float(records.is_ok.sum()) / max(records.until_s, 1e-9)
    for width in _WIDTHS_S:
        if records.until_s / width <= MOST_BINS and per_s * width >= MIN_PER_BIN:
            return width
    longest_s = max(records.until_s / MIN_BINS, _WIDTHS_S[0])
    return next((w for w in reversed(_WIDTHS_S) if w <= longest_s), _WIDTHS_S[0])


def judge(series: Values, bin_s: float, seed: list[int], watched: str = "rate") -> Steady:
    """The verdict on `series`, shape (bins,), `bin_s` seconds each."""

    name: str = watched
    if series.size < MIN_BINS or not series.mean() > 0:
        short = f"{series.size} bins of {_seconds(bin_s)}"
        why = f"Not decided: {short} are too few to tell; a longer load tells."
        if series.size >= MIN_BINS:
            why = "No steady state: not one request succeeded."
        verdict: Verdict = "not decided" if series.size < MIN_BINS else "no steady state"
        return _steady(verdict, name, (0.0, series.size * bin_s, bin_s), None, None, why)
    cut = transient(series)
    part = series[cut:]
    span = (cut * bin_s, series.size * bin_s, bin_s)
    mean = float(part.mean())
    if mean <= 0:
        why = f"No steady state: nothing succeeded after {_seconds(span[0])}."
        return _steady("no steady state", name, span, None, None, why)
    change, bulge = _movements(part, seed)
    verdict = _verdict((change, bulge))
    why = _why(verdict, name, span, change, bulge)
    return _steady(verdict, name, span, change, bulge, why)


def transient(series: Values) -> int:
    """How many bins at the begin of `series` to cut off: MSER, in batches of bins."""
    import numpy as np

    batch = max(1, series.size // _BATCHES)
    batches = series[: series.size // batch * batch].reshape(-1, batch).mean(axis=1)
    n = batches.size
    most = int(n * _MOST_CUT)
    left = n - np.arange(most + 1)
    sums = np.cumsum(batches[::-1])[::-1][: most + 1]
    squares = np.cumsum(batches[::-1] ** 2)[::-1][: most + 1]
    errors = (squares - sums**2 / left) / left**2
    return int(np.argmin(errors)) * batch


def _movements(part: Values, seed: list[int]) -> tuple[Estimate, Estimate]:
    """Linear change and curvature of `part` as shares of its mean."""
    import numpy as np

    at = (np.arange(part.size) + 0.5) / part.size - 0.5
    shapes = np.stack([np.ones(part.size), at, at**2 - np.mean(at**2)], axis=1)
    inverse = np.linalg.pinv(shapes)
    found = inverse @ part
    residuals = part - shapes @ found
    # From end to end a line moves by its slope; a parabola's middle is off its ends by a quarter.
    contrasts = np.stack([inverse[1], -0.25 * inverse[2]]) / found[0]
    values = contrasts @ part
    errors = regression_errors(residuals, contrasts, block_length(residuals), seed)
    change, bulge = (
        Estimate(float(value), (float(value) - reach, float(value) + reach))
        for value, reach in zip(values, errors, strict=True)
    )
    return change, bulge


def _verdict(movements: tuple[Estimate, Estimate]) -> Verdict:
    intervals = [each.ci95 for each in movements if each.ci95 is not None]
    if any(low > TOLERANCE or high < -TOLERANCE for low, high in intervals):
        return "no steady state"
    if all(low >= -TOLERANCE and high <= TOLERANCE for low, high in intervals):
        return "steady"
    return "not decided"


def _why(
    verdict: Verdict,
    watched: str,
    span: tuple[float, float, float],
    change: Estimate,
    bulge: Estimate,
) -> str:
    since = f"after {_seconds(span[0])}" if span[0] else "from its begin on"
    until = f"until the load's end at {_seconds(span[1])}"
    moved = f"the {watched} changes by {percent(change)}"
    curved = f"its middle is off its ends by {percent(bulge)}"
    within = f"±{100 * TOLERANCE:.0f} %"
    if verdict == "steady":
        return f"Steady {since}, {until}: {moved} and {curved}, within {within}."
    if verdict == "no steady state":
        return f"No steady state: {since}, {until}, {moved} and {curved}; beyond {within}."
    return (
        f"Steady or not is not decided: {since}, {until}, {moved} and {curved}; neither within "
        f"nor beyond {within} for certain. A longer load tells."
    )


def _steady(
    verdict: Verdict,
    watched: str,
    span: tuple[float, float, float],
    change: Estimate | None,
    bulge: Estimate | None,
    why: str,
) -> Steady:
    return Steady(
        verdict=verdict,
        of="latency" if watched == "latency" else "rate",
        begin_s=span[0],
        end_s=span[1],
        bin_s=span[2],
        change=change,
        bulge=bulge,
        why=why,
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"
