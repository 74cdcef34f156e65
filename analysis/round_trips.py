"""How many round trips a request costs: latency against RTT, as lines.

A request that waits for r crossings of a link there and back, one after the other, takes
`intercept + r * rtt`. Requests of one endpoint may do different things (a replica here or a
continent away; a lock taken twice), so there may be several lines: the *modes*. The number is
the slope of a line and any real number: half a round trip is a message that nobody waits for an
answer to, 1.4 may be the shorter of two detours.

docs/statistics.md, "Round trips", says how lines are found, what the intervals cover and how often
they hold. The maths is in `analysis/slopes/`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wanlat.analysis.slopes.bootstrap import Line
    from wanlat.analysis.slopes.levels import Levels
    from wanlat.analysis.slopes.modes import Modes
    from wanlat.analysis.slopes.straightness import Straightness

    Values = NDArray[np.float64]
    Indexes = NDArray[np.int_]

Interval = tuple[float, float]

DRAWS = 1998
"""Rows of `Estimate.draws`: resamples and their mirror images."""
MIN_RTTS = 3
"""Through two points goes a line whatever the truth: a third is needed to contradict it."""


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
        import numpy as np

        if not self.fit.is_line:
            return None
        ours = self.main.intercept_ms + self.main.round_trips * rtt_ms
        drawn = self.draws[:, 1] + self.draws[:, 0] * rtt_ms
        low, high = np.percentile(drawn, (2.5, 97.5))
        return ours, (float(low), float(high))


def estimate(
    rtt_ms: Values,
    latency_ms: Values,
    visit: Indexes,
    seed: int | Sequence[int],
    *,
    draws: int = DRAWS,
) -> Estimate:
    """The lines through the ok requests of one endpoint and placement.

    All arrays have shape (n,): the RTT that was measured during the request's visit, the request's
    latency, and the number of its visit. `seed` fixes the bootstrap: the same data and seed give
    the same estimate. `draws` may be fewer where many estimates are made to be counted.
    Raises ValueError where there are fewer than MIN_RTTS different RTTs.
    """
    import numpy as np

    from wanlat.analysis.slopes.levels import levels_of
    from wanlat.analysis.slopes.modes import find

    rtt = np.asarray(rtt_ms, dtype=np.float64)
    latency = np.asarray(latency_ms, dtype=np.float64)
    if not (np.isfinite(rtt).all() and np.isfinite(latency).all()):
        raise ValueError("an RTT or a latency is not a finite number")
    levels = levels_of(rtt) if rtt.size else None
    if levels is None or levels.count < MIN_RTTS:
        raise ValueError(
            f"requests at {levels.count if levels else 0} different RTTs: {MIN_RTTS} are needed, "
            "because through two points goes a line whatever the truth"
        )
    data = _Data(rtt, latency, np.unique(visit, return_inverse=True)[1], levels, draws)
    found = _drawable(data, find(rtt, latency, data.visit, levels))
    rng = np.random.default_rng(_seeds(seed, rtt, latency))
    reason = _missing(data, found)
    return _followed(data, found, rng) if reason is None else _refused(data, found, reason, rng)


@dataclass(frozen=True)
class _Data:
    """Shape (n,) each; `visit` counts from 0. And how many draws are to be made of it."""

    rtt_ms: Values
    latency_ms: Values
    visit: Indexes
    levels: Levels
    draws: int


def _seeds(seed: int | Sequence[int], rtt_ms: Values, latency_ms: Values) -> list[int]:
    """Of the data too, so that two runs with one seed do not draw alike and cancel out."""
    own = [seed] if isinstance(seed, int) else list(seed)
    return [*own, crc32(rtt_ms.tobytes()), crc32(latency_ms.tobytes())]


def _drawable(data: _Data, found: Modes) -> Modes:
    """The modes with requests at enough RTTs to draw a line through, and the main one anyway."""
    import numpy as np

    from wanlat.analysis.slopes.modes import only

    kept = [
        mode
        for mode in range(found.mixture.count)
        if mode == 0 or np.unique(data.levels.of[_chosen(data, found, mode)]).size >= MIN_RTTS
    ]
    return found if len(kept) == found.mixture.count else only(found, kept)


def _missing(data: _Data, found: Modes) -> Fit | None:
    """Why the main mode is no line through all RTTs, where requests are missing from it."""
    import numpy as np

    from wanlat.analysis.slopes.modes import near_line
    from wanlat.analysis.slopes.straightness import MOST_UNEXPLAINED, absent_level

    levels, n = data.levels, data.rtt_ms.size
    shared = ~found.apart[0][levels.of] & near_line(found, 0, data.rtt_ms, data.latency_ms)
    on_main = (found.members == 0) | shared
    off_ms = data.latency_ms - found.mixture.at(data.rtt_ms)[:, 0]
    medians = [float(np.median(off_ms[levels.of == level])) for level in range(levels.count)]
    level = absent_level(on_main, levels)
    if level is not None:
        at, rtt = levels.of == level, float(levels.rtt_ms[level])
        side = "slower" if medians[level] > 0 else "faster"
        return Fit(
            False,
            f"at an RTT of {rtt:.4g} ms only {int(on_main[at].sum())} of {int(at.sum())} requests "
            "lie on the line that those at other RTTs follow; they are "
            f"{abs(medians[level]):.3g} ms {side} than the line (median)",
            rtt,
            medians[level],
        )
    worst = int(np.abs(medians).argmax())
    place = float(levels.rtt_ms[worst]), medians[worst]
    unexplained = int((found.members < 0).sum())
    if unexplained > MOST_UNEXPLAINED * n:
        return Fit(False, f"{unexplained} of {n} requests lie on no line", *place)
    if np.unique(levels.of[_chosen(data, found, 0)]).size < MIN_RTTS:
        return Fit(False, f"no line has requests at {MIN_RTTS} RTTs", *place)
    return None


def _chosen(data: _Data, found: Modes, mode: int) -> NDArray[np.bool_]:
    """The requests that a mode's line is drawn through, shape (n,).

    Its members at RTTs where it can be told from all others: where two lines meet, each would be
    pulled towards the other. Where that leaves too few RTTs, what lies near it elsewhere, too.
    """
    import numpy as np

    from wanlat.analysis.slopes.modes import near_line

    apart: NDArray[np.bool_] = found.apart[mode][data.levels.of]
    members: NDArray[np.bool_] = (found.members == mode) & apart
    if np.unique(data.levels.of[members]).size >= MIN_RTTS:
        return members
    members |= ~apart & near_line(found, mode, data.rtt_ms, data.latency_ms)
    return members


def _line(
    data: _Data, chosen: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[Line, Straightness]:
    """The line through the visits' medians of `chosen`, as wide as its crookedness asks for."""
    from wanlat.analysis.slopes.bootstrap import line_through
    from wanlat.analysis.slopes.straightness import straightness
    from wanlat.analysis.slopes.visits import points_of

    points = points_of(data.rtt_ms, data.latency_ms, data.visit, data.levels.of, chosen)
    line = line_through(points, rng, draws=data.draws)
    straight = straightness(line, data.levels)
    if straight.inflate > 1:
        line = line_through(points, rng, draws=data.draws, inflate=straight.inflate)
    return line, straight


def _followed(data: _Data, found: Modes, rng: np.random.Generator) -> Estimate:
    """The estimate where the main mode is at every RTT; whether it bends is judged here."""
    import numpy as np

    from wanlat.analysis.slopes.shares import mean_error, share

    count = found.mixture.count
    told: NDArray[np.bool_] = np.all(found.apart, axis=0)[data.levels.of]
    if not told.any():
        told = np.ones(told.size, dtype=bool)
    lines = [_line(data, _chosen(data, found, mode), rng) for mode in range(count)]
    modes = tuple(
        _mode(
            line,
            share((found.members == mode)[told], data.visit[told]),
            int((found.members == mode).sum()),
        )
        for mode, (line, _) in enumerate(lines)
    )
    straight = lines[0][1]
    bends = straight.matters(float(np.ptp(data.levels.rtt_ms)))
    slopes = np.array([mode.round_trips for mode in modes])
    weights = np.array([mode.share for mode in modes])
    weights /= weights.sum()
    off = mean_error(found.members[told], data.visit[told], slopes)
    visits = int(np.unique(data.visit[told]).size)
    mean_draws = sum(w * line.draws[:, 0] for w, (line, _) in zip(weights, lines, strict=True))
    mean_draws = mean_draws + off * rng.standard_t(max(visits - 1, 1), lines[0][0].draws.shape[0])
    return Estimate(
        n=int(data.rtt_ms.size),
        modes=modes,
        unexplained=int((found.members < 0).sum()),
        fit=Fit(
            not bends,
            _bend(straight, lines[0][0]) if bends else None,
            straight.worst_rtt_ms,
            straight.deviation_ms,
        ),
        mean_round_trips=None if bends else float(weights @ slopes),
        mean_ci95=None if bends else _interval(mean_draws),
        members=found.members,
        draws=lines[0][0].draws,
    )


def _refused(data: _Data, found: Modes, fit: Fit, rng: np.random.Generator) -> Estimate:
    """The estimate where no line goes through all RTTs: what comes closest, and why not."""
    import numpy as np

    from wanlat.analysis.slopes.shares import share

    line, _ = _line(data, np.ones(data.rtt_ms.size, dtype=bool), rng)
    members = np.where(found.members == 0, 0, -1)
    on_main = members == 0
    return Estimate(
        n=int(data.rtt_ms.size),
        modes=(_mode(line, share(on_main, data.visit), int(on_main.sum())),),
        unexplained=int((~on_main).sum()),
        fit=fit,
        mean_round_trips=None,
        mean_ci95=None,
        members=members,
        draws=line.draws,
    )


def _mode(line: Line, share: tuple[float, Interval], n: int) -> Mode:
    return Mode(
        share=share[0],
        share_ci95=share[1],
        round_trips=line.slope,
        ci95=_interval(line.draws[:, 0]),
        intercept_ms=line.intercept_ms,
        intercept_ci95_ms=_interval(line.draws[:, 1]),
        n=n,
    )


def _interval(draws: Values) -> Interval:
    import numpy as np

    low, high = np.percentile(draws, (2.5, 97.5))
    return float(low), float(high)


def _bend(straight: Straightness, line: Line) -> str:
    side = "slower" if straight.deviation_ms > 0 else "faster"
    return (
        f"the latencies bend: at an RTT of {straight.worst_rtt_ms:.4g} ms they are "
        f"{abs(straight.deviation_ms):.3g} ms {side} than the closest line, and visits of one RTT "
        f"differ by {line.spread_ms:.2g} ms only (standard deviation)"
    )
