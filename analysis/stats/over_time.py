"""Intervals of figures over time, that do not take one second for independent of the next.

Under load a slow second is followed by another slow one: a flush, a compaction, a busy disk last
longer than a request. What is resampled is therefore not requests but stretches of time, wrapped
around at the end (the circular block bootstrap; Politis and Romano 1992), as long as the series
itself requires (Politis and White 2004, corrected by Patton, Politis and White 2009).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wanlat.analysis.stats.intervals import CONFIDENCE, Z95, Interval, students_quantile

Values = NDArray[np.float64]

DEFINITION = (
    "circular block bootstrap over time, 999 resamples, blocks twice as long as Politis and White "
    "(2004) have them, widened for few blocks; seeded"
)
RESAMPLES = 999
MIN_BINS = 10
"""Of fewer, no interval is given."""
MIN_BLOCKS = 4
"""Blocks never grow beyond a quarter of the span: of fewer nothing is known."""


class Estimate(NamedTuple):
    """A figure and its 95 % interval; None where none can be given."""

    value: float
    ci95: Interval | None


def ratio(tops: Values, bottoms: Values, seed: Sequence[int]) -> Estimate | None:
    """Sum of `tops` / sum of `bottoms`, both shape (bins,), and its interval.

    A mean latency is summed latencies over requests; a rate is requests over seconds. None where
    the bottoms sum to nothing.
    """
    total = float(bottoms.sum())
    if total <= 0:
        return None
    value = float(tops.sum()) / total
    # What each bin adds to the figure's error: the series whose memory counts.
    errors = tops - value * bottoms
    if tops.size < MIN_BINS or not np.ptp(errors) > 0:
        return Estimate(value, None)
    length = block_length(errors)
    drawn = _weights(tops.size, length, seed)
    below = drawn @ bottoms
    ratios = (drawn @ tops)[below > 0] / below[below > 0]
    return Estimate(value, _interval(value, ratios, length, tops.size))


def ratio_of_ratios(
    over: tuple[Values, Values], under: tuple[Values, Values], seed: Sequence[int]
) -> Estimate | None:
    """(sum of tops / sum of bottoms) of `over`, divided by that of `under`, of the same bins.

    Both are of the same resampled stretches of time, so what slows both down hardly widens the
    interval. None where one of them is nothing.
    """
    parts = np.stack((*over, *under))
    sums = parts.sum(1)
    if sums.min() <= 0:
        return None
    signs = np.array([1, -1, -1, 1])
    value = float(np.exp(signs @ np.log(sums)))
    if parts.shape[1] < MIN_BINS:
        return Estimate(value, None)
    # What each bin adds to the error of the logarithm.
    shares = parts / sums[:, None]
    length = block_length(signs @ shares)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(_weights(parts.shape[1], length, seed) @ shares.T) @ signs
    low, high = _interval(0.0, logs[np.isfinite(logs)], length, parts.shape[1])
    return Estimate(value, (value * math.exp(low), value * math.exp(high)))


def percentile(
    values: Values, bins: NDArray[np.int_], count: int, percent: float, seed: Sequence[int]
) -> Estimate | None:
    """A percentile of `values`, shape (n,), each in one of `count` bins of time; with interval.

    The share of requests at or below it is what is resampled, and its interval is read off the
    distribution of the values (Woodruff 1952). None for no values; no interval where its end lies
    beyond the greatest value, as for a p99 of few requests.
    """
    if values.size == 0:
        return None
    value = float(np.percentile(values, percent))
    below = summed(bins, (values <= value).astype(float), count)
    share = ratio(below, summed(bins, np.ones(values.size), count), seed)
    if share is None or share.ci95 is None:
        return Estimate(value, None)
    # The share at the percentile is off from the nominal one where values repeat.
    low, high = (percent / 100 + share.value - bound for bound in reversed(share.ci95))
    if not 0 < low <= high < 1 - 0.5 / values.size:
        return Estimate(value, None)
    ends = np.percentile(values, [100 * low, 100 * high])
    return Estimate(value, (float(ends[0]), float(ends[1])))


def summed(bins: NDArray[np.int_], values: Values, count: int) -> Values:
    """The sum of `values` in each of `count` bins."""
    return np.asarray(np.bincount(bins, weights=values, minlength=count), dtype=np.float64)


def regression_errors(
    residuals: Values, contrasts: Values, length: int, seed: Sequence[int]
) -> list[float]:
    """Half widths of the 95 % intervals of linear `contrasts`, shape (k, n), of a fitted series.

    Blocks of `length` of its `residuals`, shape (n,), are put in the place of others: here, unlike
    in `ratio`, it counts where in time a block stands.
    """
    n = residuals.size
    starts = np.random.default_rng(list(seed)).integers(0, n, (RESAMPLES, math.ceil(n / length)))
    places = (starts[:, :, None] + np.arange(length)).reshape(RESAMPLES, -1)[:, :n] % n
    # Residuals of a fit are a little smaller than the errors they stand for.
    drawn = (residuals * math.sqrt(n / max(n - 3, 1)))[places] @ contrasts.T
    wider = students_quantile(max(n / length - 1, 1.0)) / Z95
    return [wider * float(reach) for reach in np.quantile(np.abs(drawn), CONFIDENCE, axis=0)]


def block_length(series: Values) -> int:
    """Bins of a block for `series`, by its own memory: between 1 and size / MIN_BLOCKS."""
    n = series.size
    centred = series - series.mean()
    variance = float(centred @ centred) / n
    if variance <= 0 or n < MIN_BINS:
        return 1
    reach = min(math.ceil(math.sqrt(n)) + max(5, math.ceil(math.log10(n))), n - 1)
    covariances = np.correlate(centred, centred, "full")[n - 1 : n - 1 + reach] / n
    significant = np.abs(covariances[1:] / variance) > 2 * math.sqrt(math.log10(n) / n)
    # The lag after which `calm` lags in a row are insignificant.
    calm = max(5, math.ceil(math.sqrt(math.log10(n))))
    lags = range(significant.size - calm + 1)
    last = int(np.flatnonzero(significant)[-1]) + 1 if significant.any() else 0
    memory = next((lag for lag in lags if not significant[lag : lag + calm].any()), last)
    memory = max(memory, 1)
    used = np.arange(1, min(2 * memory, reach - 1) + 1)
    # The flat-top window of Politis and Romano: 1 up to half of its reach, then falling to 0.
    window = np.clip(2 * (1 - used / (2 * memory)), 0, 1)
    spectrum = variance + 2 * float(window @ covariances[used])
    slope = 2 * float((window * used) @ covariances[used])
    if spectrum <= 0:
        return 1
    best = (2 * slope**2 / (4 / 3 * spectrum**2)) ** (1 / 3) * n ** (1 / 3)
    # Their length makes the variance's error least, and the intervals too narrow: of seconds that
    # correlate by 0.7, 200 of them, 89 in 100 hold; of twice the length 92 do.
    return 1 if best <= 1 else int(min(math.ceil(2 * best), max(1, n // MIN_BLOCKS)))


def _weights(count: int, length: int, seed: Sequence[int]) -> Values:
    """How often each of `count` bins is in each resample: shape (RESAMPLES, count)."""
    rng = np.random.default_rng(list(seed))
    starts = rng.integers(0, count, (RESAMPLES, math.ceil(count / length)))
    flat = (starts + count * np.arange(RESAMPLES)[:, None]).ravel()
    first = np.bincount(flat, minlength=RESAMPLES * count).reshape(RESAMPLES, count)
    # A bin is drawn by every block that begins on it or up to length - 1 before, round the end.
    reached = np.cumsum(np.pad(first, ((0, 0), (length, 0)), mode="wrap"), axis=1)
    return np.asarray(reached[:, length:] - reached[:, :-length], dtype=np.float64)


def _interval(value: float, drawn: Values, length: int, bins: int) -> Interval:
    """Percentiles of what was drawn, wider where few blocks were: Student's t for normal."""
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(q) for q in np.quantile(drawn, [tail, 1 - tail]))
    few = max(bins / length - 1, 1.0)
    wider = students_quantile(few) / Z95 * math.sqrt(bins / length / few)
    return value - (value - low) * wider, value + (high - value) * wider


TOLERANCE = 0.10
"""What moves by less, from the part's begin to its end, is called steady."""
RULE = (
    "the transient is cut off by MSER, at most half of the load; what is left is steady if the "
    "95 % intervals of its linear change and of its curvature lie within 10 % of its mean"
)
STEADY_BINS = 30
"""Of fewer there is no figure."""
_MOST_CUT = 0.5
_BATCHES = 120

Verdict = Literal["steady", "no steady state", "not decided"]


@dataclass(frozen=True)
class Steady:
    """Whether there is a steady state, and the part of the series that is in it.

    `begin_s` and `end_s` are seconds after its begin; the part is what was left when the transient
    was cut off, whatever the verdict. `change` is how far it moves from the part's begin to its
    end, `curvature` how far its middle stands out from its ends, both as shares of the mean; None
    where there was too little to fit.
    """

    verdict: Verdict
    begin_s: float
    end_s: float
    bin_s: float
    change: Estimate | None = None
    curvature: Estimate | None = None

    @property
    def is_steady(self) -> bool:
        """Whether the part is one state, so that figures of it are figures of the store."""
        return self.verdict == "steady"


def steady_state(series: Values, bin_s: float, seed: list[int]) -> Steady:
    """The verdict on `series`, shape (bins,), `bin_s` seconds each."""
    end_s = series.size * bin_s
    if series.size < STEADY_BINS:
        return Steady("not decided", 0.0, end_s, bin_s)
    cut = transient(series)
    part, begin_s = series[cut:], cut * bin_s
    if not part.mean() > 0:
        return Steady("no steady state", begin_s, end_s, bin_s)
    change, curvature = _movements(part, seed)
    ends = np.array([change.ci95, curvature.ci95])
    verdict: Verdict = "not decided"
    if (ends[:, 0] > TOLERANCE).any() or (ends[:, 1] < -TOLERANCE).any():
        verdict = "no steady state"
    elif (np.abs(ends) <= TOLERANCE).all():
        verdict = "steady"
    return Steady(verdict, begin_s, end_s, bin_s, change, curvature)


def transient(series: Values) -> int:
    """How many bins at the begin of `series` to cut off: MSER, in batches of bins."""
    batch = max(1, series.size // _BATCHES)
    batches = series[: series.size // batch * batch].reshape(-1, batch).mean(axis=1)
    most = int(batches.size * _MOST_CUT)
    left = batches.size - np.arange(most + 1)
    sums = np.cumsum(batches[::-1])[::-1][: most + 1]
    squares = np.cumsum(batches[::-1] ** 2)[::-1][: most + 1]
    return int(np.argmin((squares - sums**2 / left) / left**2)) * batch


def _movements(part: Values, seed: list[int]) -> tuple[Estimate, Estimate]:
    """Linear change and curvature of `part` as shares of its mean."""
    at = (np.arange(part.size) + 0.5) / part.size - 0.5
    shapes = np.stack([np.ones(part.size), at, at**2 - np.mean(at**2)], axis=1)
    inverse = np.linalg.pinv(shapes)
    solution = inverse @ part
    residuals = part - shapes @ solution
    # From end to end a line moves by its slope; a parabola's middle is off its ends by a quarter.
    contrasts = np.stack([inverse[1], -0.25 * inverse[2]]) / solution[0]
    values = contrasts @ part
    errors = regression_errors(residuals, contrasts, block_length(residuals), seed)
    change, curvature = (
        Estimate(float(value), (float(value) - reach, float(value) + reach))
        for value, reach in zip(values, errors, strict=True)
    )
    return change, curvature
