"""Modes: the lines that latencies against RTT lie on, how many there are, and who is on which.

Requests of one endpoint may do different things (a replica here or a continent away, a lock taken
twice), so there may be several lines. Latencies are taken for a mixture of lines and of requests
that are on none. Around each line they follow Student's t with TAIL degrees of freedom, which
forgives the long tail that latencies have; a request on no line may lie anywhere (uniform). Guesses
go through the places where latencies crowd at any two RTTs; the likeliest mixture near a guess is
found by expectation and maximization (Peel and McLachlan 2000, for t); one line more is taken where
Schwarz's criterion pays for it and it is a mode (`_is_made_of_modes`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from wanlat.analysis.stats.intervals import Z95, Interval, students_quantile, wilson
from wanlat.analysis.stats.slopes import (
    ABSENT_SHARE,
    Indexes,
    Levels,
    Truths,
    Values,
)

MIN_RTTS = 3
"""Through two points goes a line whatever the truth: a third is needed to contradict it."""
MIN_SHARE = 0.04
MIN_REQUESTS = 5
"""A mode has at least MIN_SHARE of the requests and at least so many."""
MAX_MODES = 6
APART_SCALES = 4.0
"""Two lines can be distinguished at an RTT where they are farther apart than so many of their
scales added up. What is as near to a line as to one that just cannot be distinguished from it lies
near it."""
MIN_LEVELS_APART = 2
"""At so many RTTs any two modes can be distinguished. Where lines cross, or at RTT 0, none can."""
BESIDE = 0.5
"""Round trips: lines whose slopes differ by less are of requests that do the same, and of which
some wait longer, or seem to: no message takes less than half a round trip."""
MIN_BESIDE_MS = 10.0
"""Nearer than this, a line beside another may be two slices of a scheduler that had other work."""
BESIDE_SCALES = 12.0
MAX_BROADER = 2.5
"""And a line beside another is sharp, where the tail of the other is not: so many of its scales go
into the distance (a delayed acknowledgement comes 40 to 48 ms later), or it is hardly broader than
the greatest."""
MIN_STEPS_SEEN = 0.65
GREAT_SHARE = 0.15
"""A mode is seen in about as many RTT steps as lots would show it in: what happens in two or three
steps was a busy machine. But one of that share, beside no other, need not share steps with others:
a leader may have moved in between."""
TAIL_MS = 20.0
"""A request so much off a line is on it still, where no other line is nearly as near: that is how
long a busy machine makes a request wait."""

TAIL = 2.0
MIN_SCALE_MS = 0.02
"""No line is finer than this: clocks and schedulers are not."""
MAX_SCALE_RATIO = 4.0
"""A mode is not so many times broader than the finest: it would be scatter, called a mode."""
MIN_SLOPE = -0.25
"""More distance does not make a request faster. A little less than 0 is allowed for noise."""
_MIN_SCATTER = 0.002
_PARAMETERS = 4
"""Of a line, with its share."""
_ROUNDS, _ENOUGH = 40, 1e-2
_T_CONSTANT = math.gamma((TAIL + 1) / 2) / (math.sqrt(TAIL * math.pi) * math.gamma(TAIL / 2))
_TRIES = 2
_SHARES = (0.06, 0.25, 0.6)
"""That a guess is weighed with."""
_AT_MOST_A_LEVEL = 80


@dataclass(frozen=True)
class Modes:
    """K lines, the one with the greatest share first, and where they can be distinguished.

    `slope`, `intercept_ms`, `scale_ms`: shape (K,). `members`, shape (n,): index of the line of
    each request, -1 none. `apart`, shape (K, L): whether a line can be distinguished from all
    others at a level.
    """

    slope: Values
    intercept_ms: Values
    scale_ms: Values
    members: Indexes
    apart: Truths

    @property
    def count(self) -> int:
        """How many lines."""
        return int(self.slope.size)

    def off_ms(self, mode: int, rtt_ms: Values, latency_ms: Values) -> Values:
        """By how much requests are slower than a line."""
        line = self.intercept_ms[mode] + self.slope[mode] * rtt_ms
        return np.asarray(latency_ms - line, dtype=np.float64)

    def near(self, mode: int, rtt_ms: Values, latency_ms: Values) -> Truths:
        """Whether requests lie near a line, whichever they are members of."""
        off = np.abs(self.off_ms(mode, rtt_ms, latency_ms))
        return np.asarray(off <= 2 * APART_SCALES * self.scale_ms[mode], dtype=np.bool_)

    def only(self, kept: Indexes) -> Modes:
        """The `kept` lines alone, in that order; who was on another is on none."""
        place = np.full(self.count + 1, -1, dtype=np.int_)
        place[kept] = np.arange(kept.size)
        lines = self.slope[kept], self.intercept_ms[kept], self.scale_ms[kept]
        return Modes(*lines, place[self.members], self.apart[kept])


def find(rtt_ms: Values, latency_ms: Values, step: Indexes, levels: Levels) -> Modes:
    """As many lines as Schwarz's criterion pays for and are modes; at least one.

    Shape (n,) each; `step` counts from 0. Deterministic.
    """
    order = np.argsort(step, kind="stable")
    steps = np.split(order, np.flatnonzero(np.diff(step[order])) + 1)
    scale = _typical_scale(latency_ms, steps)
    lines = _guesses(latency_ms, levels, scale)
    if lines.size == 0:  # everything falls with the RTT: let the check of straightness say so
        lines = np.array([[0.0, float(np.median(latency_ms))]])
    requests = _Requests(rtt_ms, latency_ms, step, levels)
    best = requests.without_lines()
    while best.count < MAX_MODES:
        better = _one_more(requests, lines, scale, best)
        if better is None:
            break
        best = better
    return _greatest_first(requests, best)


def share(member: Truths, step: Indexes) -> tuple[float, Interval]:
    """Share of `member`, shape (n,), and its 95 % interval.

    Wilson's interval with as many requests as the steps are worth: where shares differ from step to
    step more than drawing lots would make them, fewer than there are (Rao and Scott 1992), and
    Student's quantile for so many steps.
    """
    _, of = np.unique(step, return_inverse=True)
    counts = np.bincount(of).astype(float)
    inside = np.bincount(of, weights=member)
    n, steps, hits = float(counts.sum()), counts.size, float(inside.sum())
    p = hits / n
    effect, quantile = 1.0, Z95
    if steps > 2 and 0 < p < 1:
        among = float(((inside - p * counts) ** 2).sum()) * steps / (steps - 1)
        effect = max(1.0, among / (n * p * (1 - p)))
        if effect > 1:
            quantile = students_quantile(steps - 1)
    return p, wilson(hits / effect, n / effect, quantile)


def mean_error(members: Indexes, step: Indexes, slopes: Values) -> float:
    """Standard error that uncertain shares give the mean of `slopes` over explained requests.

    `members`, shape (n,), are indexes of `slopes`, -1 for none. The greater of what drawing lots
    gives and of what the steps differ.
    """
    explained = members >= 0
    each = slopes[members[explained]]
    if each.size < 2 or np.ptp(slopes) == 0:
        return 0.0
    off = each - each.mean()
    names, of = np.unique(step[explained], return_inverse=True)
    among = 0.0
    if names.size > 2:
        among = float((np.bincount(of, weights=off) ** 2).sum()) * names.size / (names.size - 1)
    return float(np.sqrt(max(among, float((off**2).sum())))) / each.size


# --- guesses ------------------------------------------------------------------------------------


def _typical_scale(latency_ms: Values, steps: list[Indexes]) -> float:
    """How broad (one sigma, ms) a crowd of latencies of one step is, whichever crowd it is.

    From the shortest interval with a third of a step's requests, so that it is of one mode even
    where the greatest mode has a third of the requests only.
    """
    widths = []
    for step in steps:
        ordered = np.sort(latency_ms[step])
        inner = max(3, -(-ordered.size // 3))
        if ordered.size >= 3:
            widths.append(float((ordered[inner - 1 :] - ordered[: ordered.size - inner + 1]).min()))
    # A third of a normal distribution lies within 0.43 sigma on either side of its middle; the
    # shortest interval of a small sample is shorter by about a third.
    typical = float(np.median(widths)) / (2 * 0.43 * 0.67) if widths else 1.0
    return max(typical, MIN_SCALE_MS)


def _crowds(latency_ms: Values, scale_ms: float) -> Values:
    """Where `latency_ms`, of one RTT, crowd: medians of what lies within 3 scales, most first."""
    ordered = np.sort(latency_ms)
    if ordered.size > _AT_MOST_A_LEVEL:  # enough of them to see every mode of some per cent
        ordered = np.quantile(ordered, (np.arange(_AT_MOST_A_LEVEL) + 0.5) / _AT_MOST_A_LEVEL)
    begin = np.searchsorted(ordered, ordered - 3 * scale_ms)
    end = np.searchsorted(ordered, ordered + 3 * scale_ms, side="right")
    found: list[float] = []
    taken = np.zeros(ordered.size, dtype=bool)
    for index in np.argsort(begin - end, kind="stable"):
        if taken[index] or len(found) == MAX_MODES:
            continue
        inside = slice(int(begin[index]), int(end[index]))
        taken[inside] = True
        found.append(float(np.median(ordered[inside])))
    return np.array(found)


def _guesses(latency_ms: Values, levels: Levels, scale_ms: float) -> Values:
    """Lines (slope, intercept) through crowds of two RTTs, shape (L, 2)."""
    crowds = [_crowds(latency_ms[levels.of == n], scale_ms) for n in range(levels.count)]
    lines = []
    for (x0, low), (x1, high) in combinations(zip(levels.rtt_ms, crowds, strict=True), 2):
        slope = ((high[None, :] - low[:, None]) / (x1 - x0)).ravel()
        lines.append(np.column_stack((slope, np.repeat(low, high.size) - slope * x0)))
    found = np.concatenate(lines)
    return found[found[:, 0] >= MIN_SLOPE]


# --- the mixture --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Mixture:
    """K lines and the rest: `slope`, `intercept_ms`, `scale_ms`, `share`, shape (K,).

    `belongs`: shape (n, K + 1), how likely it is that a request is of each line, and last of none.
    `density`, shape (n,), 1/ms: how likely the mixture makes each latency.
    """

    slope: Values
    intercept_ms: Values
    scale_ms: Values
    share: Values
    belongs: Values
    density: Values

    @property
    def count(self) -> int:
        return int(self.slope.size)

    def bic(self) -> float:
        """Schwarz's criterion; less is better."""
        n, likelihood = self.density.size, float(np.log(self.density).sum())
        return _PARAMETERS * self.count * math.log(n) - 2 * likelihood

    def at(self, rtt_ms: Values) -> Values:
        """Latency of each line at each of `rtt_ms`: shape (..., K)."""
        return np.asarray(self.intercept_ms + self.slope * rtt_ms[..., None], dtype=np.float64)

    def apart(self, rtt_ms: Values) -> Truths:
        """Whether each two lines can be distinguished at each of `rtt_ms`, a line from itself too.

        Shape (K, K, L).
        """
        at = self.at(rtt_ms).T
        reach = APART_SCALES * (self.scale_ms[:, None] + self.scale_ms[None, :])
        far: Truths = np.abs(at[:, None, :] - at[None, :, :]) > reach[..., None]
        return far | np.eye(self.count, dtype=bool)[..., None]


@dataclass(frozen=True)
class _Requests:
    """Shape (n,) each."""

    rtt_ms: Values
    latency_ms: Values
    step: Indexes
    levels: Levels

    @property
    def scatter(self) -> float:
        """Density (1/ms) of requests that are on no line: anywhere between the extremes."""
        return 1.0 / max(float(np.ptp(self.latency_ms)), 100 * MIN_SCALE_MS)

    def without_lines(self) -> _Mixture:
        """The mixture that takes every request for scatter."""
        n, none = self.rtt_ms.size, np.array([])
        return _Mixture(none, none, none, none, np.ones((n, 1)), np.full(n, self.scatter))


def _densities(residual_ms: Values, scale_ms: Values | float) -> Values:
    """Density (1/ms) of Student's t with TAIL degrees of freedom."""
    # (1 + z²/ν)^(-(ν+1)/2) with ν = 2, without a slow power.
    base = 1 + (residual_ms / scale_ms) ** 2 / TAIL
    return _T_CONSTANT / (scale_ms * base * base**0.5)


def _likeliest(requests: _Requests, near: _Mixture) -> _Mixture:
    """The likeliest mixture that hill-climbing from the lines of `near` finds."""
    rtt, latency, scatter = requests.rtt_ms[:, None], requests.latency_ms[:, None], requests.scatter
    slope, intercept, scale, share = near.slope, near.intercept_ms, near.scale_ms, near.share
    rest, before = max(1 - float(share.sum()), _MIN_SCATTER), -math.inf
    for _ in range(_ROUNDS):
        residuals = latency - intercept - slope * rtt
        each = share * _densities(residuals, scale)
        total = each.sum(1) + rest * scatter
        likelihood = float(np.log(total).sum())
        belongs = each / total[:, None]
        if likelihood - before < _ENOUGH:
            break
        before = likelihood
        weights = belongs * (TAIL + 1) / (TAIL + (residuals / scale) ** 2)
        sums = weights.sum(0) + 1e-12
        x_mean, y_mean = (weights * rtt).sum(0) / sums, (weights * latency).sum(0) / sums
        across = rtt - x_mean
        steep = np.maximum((weights * across**2).sum(0), 1e-9)
        slope = (weights * across * latency).sum(0) / steep
        intercept = y_mean - slope * x_mean
        off, mass = latency - intercept - slope * rtt, belongs.sum(0)
        scale = np.sqrt((weights * off**2).sum(0) / (mass + 1e-12))
        scale = np.maximum(scale, MIN_SCALE_MS)
        scale = np.minimum(scale, MAX_SCALE_RATIO * scale.min())
        share = mass / rtt.size
        rest = max(1 - float(share.sum()), _MIN_SCATTER)
    belongs = np.column_stack((belongs, 1 - belongs.sum(1)))
    return _Mixture(slope, intercept, scale, share, belongs, total)


def _one_more(
    requests: _Requests, lines: Values, scale_ms: float, now: _Mixture
) -> _Mixture | None:
    """`now` with the line that explains the most of what it does not; None: none is worth it."""
    rtt_ms, latency_ms, levels = requests.rtt_ms, requests.latency_ms, requests.levels
    off = latency_ms[:, None] - now.at(rtt_ms)
    rest = max(1 - float(now.share.sum()), _MIN_SCATTER)
    density = (now.share * _densities(off, now.scale_ms)).sum(1) + rest * requests.scatter
    width = float(now.scale_ms.min()) if now.count else scale_ms
    # By how many nats each line would raise the likelihood, with the best of some shares.
    ratio = _densities(latency_ms - lines[:, 1:] - lines[:, :1] * rtt_ms, width) / density
    each = np.stack([np.log1p(share * (ratio - 1)).sum(1) for share in _SHARES])
    gain, shares = each.max(0), np.array(_SHARES)[each.argmax(0)]
    # The guess is a little off the line, so it gains less than the line will.
    needed = 0.25 * _PARAMETERS * math.log(latency_ms.size) if now.count else -math.inf
    best, limit = None, now.bic() if now.count else math.inf
    for _ in range(_TRIES):
        index = int(gain.argmax())
        if gain[index] <= needed:
            break
        line = lines[index]
        tried = _likeliest(
            requests,
            replace(
                now,
                slope=np.append(now.slope, line[0]),
                intercept_ms=np.append(now.intercept_ms, line[1]),
                scale_ms=np.append(now.scale_ms, 2 * width),
                share=np.append(now.share * (1 - shares[index]), shares[index]),
            ),
        )
        # One line there is in any case: whether it is one is for others to say.
        is_right = now.count == 0 or _is_made_of_modes(tried, requests)
        if is_right and tried.bic() < limit:
            best, limit = tried, tried.bic()
        distance = np.abs((lines - line) @ np.array([levels.rtt_ms, np.ones(levels.count)]))
        gain = np.where(distance.max(1) > 3 * width, gain, -math.inf)
    return best


# --- what is a mode -----------------------------------------------------------------------------


def _is_made_of_modes(tried: _Mixture, requests: _Requests) -> bool:
    """Whether each line of `tried` is a mode: by the constants above, each with its reason."""
    n, levels = requests.rtt_ms.size, requests.levels
    if tried.share.min() < max(MIN_SHARE, MIN_REQUESTS / n) or tried.slope.min() < MIN_SLOPE:
        return False
    pairs = tried.apart(levels.rtt_ms)
    if pairs.sum(2).min() < MIN_LEVELS_APART:
        return False
    owner = tried.belongs.argmax(1)
    for mode in range(tried.count):
        at = np.bincount(levels.of[owner == mode], minlength=levels.count)
        present = at >= np.maximum(1, ABSENT_SHARE * tried.share[mode] * levels.sizes)
        apart = pairs[mode].all(0)
        if (present | ~apart).sum() < MIN_RTTS or (present & apart).sum() < MIN_LEVELS_APART:
            return False
    lesser = (mode for mode in range(tried.count) if mode != int(tried.share.argmax()))
    return all(
        _is_more_than_busy_steps(tried, mode, owner, pairs, requests) for mode in lesser
    ) and _has_valleys(tried, pairs, requests)


def _is_more_than_busy_steps(
    tried: _Mixture, mode: int, owner: Indexes, pairs: Truths, requests: _Requests
) -> bool:
    """Whether a lesser line is more than the tail of one that it runs beside, or a few steps."""
    slopes = np.abs(tried.slope - tried.slope[mode])
    beside = np.flatnonzero((slopes < BESIDE) & (np.arange(tried.count) != mode))
    distinct = pairs[mode].all(0)[requests.levels.of]
    share = max(float((owner[distinct] == mode).mean()), 1 / distinct.size)
    if beside.size or share < GREAT_SHARE:
        sizes = np.bincount(requests.step[distinct])
        counts = np.bincount(requests.step[distinct], weights=owner[distinct] == mode)
        if (counts > 0).sum() < MIN_STEPS_SEEN * (1 - (1 - share) ** sizes).sum():
            return False
    if not beside.size:
        return True
    at = tried.at(requests.levels.rtt_ms)
    distance = np.abs(at[:, beside] - at[:, [mode]])
    if ((distance >= MIN_BESIDE_MS).sum(0) < MIN_RTTS).any():
        return False
    greatest = float(tried.scale_ms[tried.share.argmax()])
    sharp = max(MAX_BROADER * greatest, float(np.median(distance)) / BESIDE_SCALES)
    return bool(tried.scale_ms[mode] <= sharp)


def _has_valleys(tried: _Mixture, pairs: Truths, requests: _Requests) -> bool:
    """Whether between neighbouring lines are half as many requests as on the lesser, or fewer.

    The tail of one mode passes for a second one where only likelihoods are compared. A tail has no
    valley between itself and the crowd.
    """
    at = tried.at(requests.rtt_ms)
    for first, second in combinations(range(tried.count), 2):
        others = np.delete(at, (first, second), axis=1)
        low = np.minimum(at[:, first], at[:, second])[:, None]
        high = np.maximum(at[:, first], at[:, second])[:, None]
        between_them = ((others > low) & (others < high)).any(1)
        here = pairs[first, second][requests.levels.of] & ~between_them
        if not here.any():  # a third line lies between them everywhere
            continue
        # 0 on the first line, 1 on the second; a band is a third of the way wide.
        gap = at[here, second] - at[here, first]
        place = (requests.latency_ms[here] - at[here, first]) / gap
        between = int(((place > 1 / 3) & (place < 2 / 3)).sum())
        if between > 0.5 * min(int((np.abs(place - end) < 1 / 6).sum()) for end in (0, 1)):
            return False
    return True


def _greatest_first(requests: _Requests, mixture: _Mixture) -> Modes:
    """Modes in the order of their shares, counted where all of them can be distinguished."""
    rtt_ms, levels, count = requests.rtt_ms, requests.levels, mixture.count
    members: Indexes = mixture.belongs.argmax(1)
    off = np.abs(requests.latency_ms[:, None] - mixture.at(rtt_ms))
    ordered = np.sort(off, axis=1)
    close = ordered[:, 0] <= TAIL_MS
    if count > 1:
        close &= ordered[:, 0] < ordered[:, 1] / 2
    members = np.where((members == count) & close, off.argmin(1), members)
    apart: Truths = np.all(mixture.apart(levels.rtt_ms), axis=1)
    distinct: Truths = np.all(apart, axis=0)[levels.of]
    counts = np.bincount(members[distinct], minlength=count + 1)[:-1]
    members = np.where(members == count, -1, members)
    modes = Modes(mixture.slope, mixture.intercept_ms, mixture.scale_ms, members, apart)
    return modes.only(np.lexsort((-mixture.share, -counts)))
