"""How many round trips a request makes: latency against RTT, as lines.

A request that waits for r WAN hops there and back, one after the other, takes `intercept + r *
rtt`. Requests of one endpoint may do different things, so there may be several lines: the *modes*
(`stats.modes`). The number is the slope of a line (`stats.slopes`) and any real number: half a
round trip is a message that waits for no answer. docs/reference/statistics.md, "Round
trips", has how lines are found, what the intervals cover and how often they hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from wanlat.analysis.stats import modes, slopes
from wanlat.analysis.stats.intervals import Interval, percentile_interval
from wanlat.analysis.stats.modes import MIN_RTTS, Modes
from wanlat.analysis.stats.slopes import Indexes, Levels, Line, Truths, Values

DRAWS = 1998
"""Rows of `Estimate.draws`, half of them mirror images."""
MIN_MAIN_SHARE = 0.25
"""A line with fewer of the requests than that is no mode of the endpoint."""


@dataclass(frozen=True)
class Mode:
    """Requests with latencies on one line.

    `share` (0..1) is of all requests, unexplained ones included; `n` of them count as members.
    `round_trips` is the slope.
    """

    share: float
    round_trips: float
    ci95: Interval
    intercept_ms: float
    intercept_ci95_ms: Interval
    n: int


@dataclass(frozen=True)
class Estimate:
    """The lines of one endpoint and placement, the greatest share first.

    `why` is, in words, why a line is the wrong model of the main mode; then there is no mode and no
    number. `members`, shape (n,): for each request the index of its mode, -1 for unexplained ones
    (`unexplained` of them). `draws`, shape (B, 2): draws of slope (round trips) and intercept (ms)
    of the main mode, as wide as the intervals and in no order that means anything, so that the
    draws of two independent estimates may be subtracted row by row. `mean_round_trips` weighs the
    slopes of all modes with their shares.
    """

    n: int
    modes: tuple[Mode, ...]
    unexplained: int
    why: str | None
    mean_round_trips: float | None
    mean_ci95: Interval | None
    members: Indexes
    draws: Values

    @property
    def main(self) -> Mode | None:
        """The mode with the greatest share; None where there is no line."""
        return self.modes[0] if self.modes else None

    @property
    def integer(self) -> int | None:
        """The one whole number within the main mode's interval; None: there is none, or several."""
        if self.main is None:
            return None
        low, high = math.ceil(self.main.ci95[0]), math.floor(self.main.ci95[1])
        return low if low == high else None

    def at(self, rtt_ms: float) -> tuple[float, Interval] | None:
        """Latency (ms) of the main mode at `rtt_ms`, and its 95 % interval; None: not a line."""
        if self.main is None:
            return None
        ours = self.main.intercept_ms + self.main.round_trips * rtt_ms
        return ours, percentile_interval(self.draws[:, 1] + self.draws[:, 0] * rtt_ms)


def estimate(
    rtt_ms: Values,
    latency_ms: Values,
    step: Indexes,
    seed: int | Sequence[int],
    *,
    draws: int = DRAWS,
) -> Estimate:
    """The lines through the ok requests of one endpoint and placement.

    All arrays have shape (n,): the RTT that was measured during the request's RTT step, the
    request's latency, and the number of its step. `seed` fixes the draws: the same data and seed
    give the same estimate. Raises ValueError where there are fewer than MIN_RTTS different RTTs.
    """
    rtt = np.asarray(rtt_ms, dtype=np.float64)
    latency = np.asarray(latency_ms, dtype=np.float64)
    if not (np.isfinite(rtt).all() and np.isfinite(latency).all()):
        raise ValueError("an RTT or a latency is not a finite number")
    levels = slopes.levels_of(rtt) if rtt.size else None
    if levels is None or levels.count < MIN_RTTS:
        raise ValueError(
            f"requests at {levels.count if levels else 0} different RTTs: {MIN_RTTS} are needed, "
            "because through two points goes a line whatever the truth"
        )
    # Of the data too, so that two runs with one seed do not draw alike and cancel out.
    seeds = [seed] if isinstance(seed, int) else list(seed)
    rng = np.random.default_rng([*seeds, crc32(rtt.tobytes()), crc32(latency.tobytes())])
    fit = modes.find(rtt, latency, levels)
    members = fit.members
    is_clear: Truths = np.all(fit.apart, axis=1)[levels.level]
    where: Truths = is_clear if is_clear.any() else np.ones_like(is_clear)
    why = _why_refused(fit, latency, levels, where)
    lines: list[Line] = []
    if why is None:
        chosen = [_chosen(fit, number, levels) for number in range(fit.count)]
        drawn = [n for n, on in enumerate(chosen) if np.unique(levels.level[on]).size >= MIN_RTTS]
        place = np.full(fit.count + 1, -1)
        place[drawn] = np.arange(len(drawn))
        members = place[members]
        for on in (chosen[number] for number in drawn):
            requests = rtt[on], latency[on], step[on], levels.level[on]
            lines.append(slopes.line_through(*requests, rng, draws=draws))
        why = lines[0].bend if 0 in drawn else f"no line has requests at {MIN_RTTS} RTTs"
    made = [] if why else [_mode(line, members == n, where) for n, line in enumerate(lines)]
    mean, mean_ci95 = _mean(made, lines, members[where], step[where], rng) if made else (None, None)
    return Estimate(
        n=members.size,
        modes=tuple(made),
        unexplained=int((members < 0).sum()),
        why=why,
        mean_round_trips=mean,
        mean_ci95=mean_ci95,
        members=members,
        draws=lines[0].draws if lines else np.empty((0, 2)),
    )


def _chosen(fit: Modes, mode: int, levels: Levels) -> Truths:
    """The requests that a mode's line is drawn through, shape (n,).

    Its members at RTTs where it is separate from all others: where two lines meet, each would be
    pulled towards the other. Where that leaves too few RTTs, what lies near it elsewhere, too.
    """
    apart: Truths = fit.apart[levels.level, mode]
    members: Truths = (fit.members == mode) & apart
    if np.unique(levels.level[members]).size >= MIN_RTTS:
        return members
    return members | (~apart & fit.near[:, mode])


def _why_refused(fit: Modes, latency_ms: Values, levels: Levels, where: Truths) -> str | None:
    """Why no lines go through all RTTs, where requests are missing from them."""
    explained: Truths = fit.members >= 0
    level = slopes.absent_level(explained, levels)
    if level is not None:
        at, rtt_ms = levels.level == level, float(levels.rtt_ms[level])
        off_ms = float(np.median(latency_ms[at]) - fit.at_ms[level, 0])
        return (
            f"at an RTT of {rtt_ms:.4g} ms only {int(explained[at].sum())} of {int(at.sum())} "
            "requests lie on a line that those at other RTTs follow; they are "
            f"{abs(off_ms):.3g} ms {'slower' if off_ms > 0 else 'faster'} than the line (median)"
        )
    on_main = int((fit.members[where] == 0).sum())
    if on_main < MIN_MAIN_SHARE * where.sum():
        return f"no line has more than {on_main} of {int(where.sum())} requests"
    return None


def _mode(line: Line, member: Truths, where: Truths) -> Mode:
    return Mode(
        share=float(member[where].mean()),
        round_trips=line.slope,
        ci95=percentile_interval(line.draws[:, 0]),
        intercept_ms=line.intercept_ms,
        intercept_ci95_ms=percentile_interval(line.draws[:, 1]),
        n=int(member.sum()),
    )


def _mean(
    made: Sequence[Mode],
    lines: Sequence[Line],
    members: Indexes,
    step: Indexes,
    rng: np.random.Generator,
) -> tuple[float, Interval]:
    """Mean of the slopes over explained requests, and its interval.

    Shares are uncertain: by the greater of what drawing lots gives and of what the steps differ.
    """
    weights = np.array([mode.share for mode in made])
    weights /= weights.sum()
    slopes = np.array([mode.round_trips for mode in made])
    mean = float(weights @ slopes)
    off = np.where(members >= 0, slopes[members] - mean, 0.0)
    _, places = np.unique(step, return_inverse=True)
    steps = int(places.max()) + 1
    among = float((np.bincount(places, weights=off) ** 2).sum()) * steps / max(steps - 1, 1)
    error = math.sqrt(max(among, float((off**2).sum()))) / max((members >= 0).sum(), 1)
    drawn = np.array([line.draws[:, 0] for line in lines]).T @ weights
    return mean, percentile_interval(drawn + error * rng.standard_t(max(steps - 1, 1), drawn.size))
