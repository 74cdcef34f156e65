"""How many round trips a request costs: latency against RTT, as lines.

A request that waits for r WAN hops there and back, one after the other, takes
`intercept + r * rtt`. Requests of one endpoint may do different things, so there may be several
lines: the *modes* (`stats.modes`). The number is the slope of a line (`stats.slopes`) and any real
number: half a round trip is a message that nobody waits for an answer to, 1.4 may be the shorter of
two detours.

docs/statistics.md, "Round trips", says how lines are found, what the intervals cover and how often
they hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from wanlat.analysis.stats import modes, slopes
from wanlat.analysis.stats.bootstrap import percentile_interval
from wanlat.analysis.stats.intervals import Interval
from wanlat.analysis.stats.modes import MIN_RTTS, Modes
from wanlat.analysis.stats.slopes import Indexes, Levels, Line, Truths, Values

DRAWS = 1998
"""Rows of `Estimate.draws`: resamples and their mirror images."""
MOST_UNEXPLAINED = 0.5
"""Where more than this share of all requests is on no line, nothing is said of a line."""


@dataclass(frozen=True)
class Mode:
    """Requests whose latencies lie on one line.

    `share` (0..1) is of all requests, those on no line included; `n` of them count as members.
    `round_trips` is the slope. Where the latencies follow no line, `round_trips`, `ci95` and the
    intercept's interval are still those of the closest line: ask `Estimate.round_trips` for a
    number that may be printed.
    """

    share: float
    share_ci95: Interval
    round_trips: float
    ci95: Interval
    intercept_ms: float
    intercept_ci95_ms: Interval
    n: int


@dataclass(frozen=True)
class Fit:
    """Whether a line is the right model of the main mode.

    `why` says in words what contradicts it, and is None where `is_line`. `worst_rtt_ms` is the
    measured RTT at which the latencies are farthest from the line, `deviation_ms` by how much
    (positive: slower than the line).
    """

    is_line: bool
    why: str | None
    worst_rtt_ms: float
    deviation_ms: float


@dataclass(frozen=True)
class Estimate:
    """The lines of one endpoint and placement, the greatest share first.

    `members`, shape (n,): for each request the index of its mode in `modes`, -1 for those on no
    line (`unexplained` of them). `draws`, shape (B, 2): bootstrap draws of slope (round trips) and
    intercept (ms) of the main mode, as wide as the intervals and in no order that means anything,
    so that the draws of two independent estimates may be subtracted row by row.

    Where `fit` is no line, `round_trips`, `ci95`, `intercept_ms`, `mean_round_trips` and
    `mean_ci95` are None: there is no such number.
    """

    n: int
    modes: tuple[Mode, ...]
    unexplained: int
    fit: Fit
    mean_round_trips: float | None
    mean_ci95: Interval | None
    members: Indexes
    draws: Values

    @property
    def main(self) -> Mode:
        """The mode with the greatest share; where no line fits, what came closest."""
        return self.modes[0]

    @property
    def round_trips(self) -> float | None:
        """Slope of the main mode; None where it is not a line."""
        return self.main.round_trips if self.fit.is_line else None

    @property
    def ci95(self) -> Interval | None:
        """95 % interval of `round_trips`."""
        return self.main.ci95 if self.fit.is_line else None

    @property
    def intercept_ms(self) -> float | None:
        """What the main mode takes at RTT 0, the store's own time."""
        return self.main.intercept_ms if self.fit.is_line else None

    @property
    def intercept_ci95_ms(self) -> Interval | None:
        """95 % interval of `intercept_ms`."""
        return self.main.intercept_ci95_ms if self.fit.is_line else None

    @property
    def integer(self) -> int | None:
        """The one whole number within `ci95`; None where there is none, or several."""
        if self.ci95 is None:
            return None
        low, high = math.ceil(self.ci95[0]), math.floor(self.ci95[1])
        return low if low == high else None

    def at(self, rtt_ms: float) -> tuple[float, Interval] | None:
        """Latency (ms) of the main mode at `rtt_ms`, and its 95 % interval; None: not a line."""
        if not self.fit.is_line:
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
    request's latency, and the number of its step. `seed` fixes the bootstrap: the same data and
    seed give the same estimate. `draws` may be fewer where many estimates are made to be counted.
    Raises ValueError where there are fewer than MIN_RTTS different RTTs.
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
    number = np.unique(step, return_inverse=True)[1]
    lines = _Lines(rtt, latency, number, levels, modes.find(rtt, latency, number, levels))
    lines = lines.drawable()
    refused = lines.refused()
    return lines.followed(rng, draws) if refused is None else lines.closest(refused, rng, draws)


@dataclass(frozen=True)
class _Lines:
    """Requests, shape (n,) each, and the lines they were found to lie on; `step` counts from 0."""

    rtt_ms: Values
    latency_ms: Values
    step: Indexes
    levels: Levels
    found: Modes

    def drawable(self) -> _Lines:
        """Those with requests at enough RTTs to draw a line through, and the main one anyway."""
        kept = [n for n in range(self.found.count) if n == 0 or self._rtts(n) >= MIN_RTTS]
        found = self.found.only(np.array(kept))
        return _Lines(self.rtt_ms, self.latency_ms, self.step, self.levels, found)

    def _rtts(self, mode: int) -> int:
        return int(np.unique(self.levels.of[self._chosen(mode)]).size)

    def _chosen(self, mode: int) -> Truths:
        """The requests that a mode's line is drawn through, shape (n,).

        Its members at RTTs where it can be told from all others: where two lines meet, each would
        be pulled towards the other. Where that leaves too few RTTs, what lies near it elsewhere,
        too.
        """
        apart: Truths = self.found.apart[mode][self.levels.of]
        members: Truths = (self.found.members == mode) & apart
        if np.unique(self.levels.of[members]).size >= MIN_RTTS:
            return members
        return members | (~apart & self.found.near(mode, self.rtt_ms, self.latency_ms))

    def refused(self) -> Fit | None:
        """Why the main mode is no line through all RTTs, where requests are missing from it."""
        found, levels = self.found, self.levels
        shared = ~found.apart[0][levels.of] & found.near(0, self.rtt_ms, self.latency_ms)
        on_main: Truths = (found.members == 0) | shared
        off_ms = found.off_ms(0, self.rtt_ms, self.latency_ms)
        medians = [float(np.median(off_ms[levels.of == level])) for level in range(levels.count)]
        level = slopes.absent_level(on_main, levels)
        if level is not None:
            at, rtt = levels.of == level, float(levels.rtt_ms[level])
            side = "slower" if medians[level] > 0 else "faster"
            return Fit(
                False,
                f"at an RTT of {rtt:.4g} ms only {int(on_main[at].sum())} of {int(at.sum())} "
                "requests lie on the line that those at other RTTs follow; they are "
                f"{abs(medians[level]):.3g} ms {side} than the line (median)",
                rtt,
                medians[level],
            )
        worst = int(np.abs(medians).argmax())
        place = float(levels.rtt_ms[worst]), medians[worst]
        unexplained = int((found.members < 0).sum())
        if unexplained > MOST_UNEXPLAINED * found.members.size:
            return Fit(
                False, f"{unexplained} of {found.members.size} requests lie on no line", *place
            )
        if self._rtts(0) < MIN_RTTS:
            return Fit(False, f"no line has requests at {MIN_RTTS} RTTs", *place)
        return None

    def _line(self, chosen: Truths, rng: np.random.Generator, draws: int) -> Line:
        points = slopes.points_of(
            self.rtt_ms[chosen], self.latency_ms[chosen], self.step[chosen], self.levels.of[chosen]
        )
        return slopes.line_through(points, self.levels, rng, draws=draws)

    def followed(self, rng: np.random.Generator, draws: int) -> Estimate:
        """The estimate where the main mode is at every RTT; whether it bends is judged here."""
        members = self.found.members
        told: Truths = np.all(self.found.apart, axis=0)[self.levels.of]
        if not told.any():
            told = np.ones(told.size, dtype=bool)
        where = members[told], self.step[told]
        lines = [self._line(self._chosen(n), rng, draws) for n in range(self.found.count)]
        found = tuple(
            _mode(line, modes.share(where[0] == n, where[1]), int((members == n).sum()))
            for n, line in enumerate(lines)
        )
        each = np.array([mode.round_trips for mode in found])
        weights = np.array([mode.share for mode in found])
        weights /= weights.sum()
        off = modes.mean_error(*where, each)
        drawn = sum(w * line.draws[:, 0] for w, line in zip(weights, lines, strict=True))
        steps = int(np.unique(where[1]).size)
        drawn = drawn + off * rng.standard_t(max(steps - 1, 1), lines[0].draws.shape[0])
        straight = lines[0].straight
        why = _bend(lines[0]) if straight.bends else None
        return Estimate(
            n=members.size,
            modes=found,
            unexplained=int((members < 0).sum()),
            fit=Fit(why is None, why, straight.worst_rtt_ms, straight.deviation_ms),
            mean_round_trips=None if straight.bends else float(weights @ each),
            mean_ci95=None if straight.bends else percentile_interval(drawn),
            members=members,
            draws=lines[0].draws,
        )

    def closest(self, fit: Fit, rng: np.random.Generator, draws: int) -> Estimate:
        """The estimate where no line goes through all RTTs: what comes closest, and why not."""
        line = self._line(np.ones(self.rtt_ms.size, dtype=bool), rng, draws)
        on_main = self.found.members == 0
        n = int(on_main.sum())
        return Estimate(
            n=on_main.size,
            modes=(_mode(line, modes.share(on_main, self.step), n),),
            unexplained=on_main.size - n,
            fit=fit,
            mean_round_trips=None,
            mean_ci95=None,
            members=np.where(on_main, 0, -1),
            draws=line.draws,
        )


def _mode(line: Line, share: tuple[float, Interval], n: int) -> Mode:
    return Mode(
        share=share[0],
        share_ci95=share[1],
        round_trips=line.slope,
        ci95=percentile_interval(line.draws[:, 0]),
        intercept_ms=line.intercept_ms,
        intercept_ci95_ms=percentile_interval(line.draws[:, 1]),
        n=n,
    )


def _bend(line: Line) -> str:
    straight = line.straight
    return (
        f"the latencies bend: at an RTT of {straight.worst_rtt_ms:.4g} ms they are "
        f"{abs(straight.deviation_ms):.3g} ms {'slower' if straight.deviation_ms > 0 else 'faster'}"
        " than the closest line, and RTT steps of one RTT differ by "
        f"{line.spread_ms:.2g} ms only (standard deviation)"
    )
