"""How many lines there are, and which request is on which."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.slopes.levels import Levels
from wanlat.analysis.slopes.mixture import Mixture, densities, maximize, scatter_density
from wanlat.analysis.slopes.search import gains, guesses, typical_scale

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Indexes = NDArray[np.int_]
    Truths = NDArray[np.bool_]

MAX_MODES = 6
MIN_SHARE = 0.04
MIN_REQUESTS = 5
"""A mode has at least MIN_SHARE of the requests and at least so many."""
APART_SCALES = 4.0
"""Two lines are told apart at an RTT where they are farther apart than so many of their scales
added up, and than MIN_APART_MS."""
MIN_APART_MS = 1.0
MIN_LEVELS_APART = 2
MIN_LEVELS = 3
"""A mode needs requests at three RTTs, and to be told apart from each other mode at two."""
PARALLEL = 0.15
"""Slopes that differ less are of lines side by side."""
MIN_PARALLEL_MS = 10.0
"""Nearer than this, a line beside another may be two slices of a scheduler that had other work."""
CLEARLY_ANOTHER_SLOPE = 0.25
GREAT_SHARE = 0.15
MIN_VISITS_SEEN = 0.65
"""Of the visits in which a mode of that share would be seen, were lots drawn."""
MAX_UNEVEN = 5.0
"""How much more the counts of visits may vary than if lots were drawn."""
MAX_BROADER = 2.5
TAIL_MS = 20.0
"""A request so much off a line is on it still, where no other line is nearly as near: that is how
long a busy machine makes a request wait."""
NEAR_SCALES = 8.0
_TRIES = 2
_PARAMETERS = 4


@dataclass(frozen=True)
class Modes:
    """Lines, the greatest share first, and where they can be told apart.

    `members`, shape (n,): index of the line, -1 none. `apart`, shape (K, L): whether a line can be
    told from all others at a level.
    """

    mixture: Mixture
    members: Indexes
    apart: Truths


def find(rtt_ms: Values, latency_ms: Values, visit: Indexes, levels: Levels) -> Modes:
    """As many lines as Schwarz's criterion pays for and the rules above admit; at least one.

    Shape (n,) each; `visit` counts from 0. Deterministic.
    """
    import numpy as np

    order = np.argsort(visit, kind="stable")
    visits = np.split(order, np.flatnonzero(np.diff(visit[order])) + 1)
    scale = typical_scale(latency_ms, visits)
    lines = guesses(latency_ms, levels, scale)
    if lines.size == 0:  # everything falls with the RTT: let the check of straightness say so
        lines = np.array([[0.0, float(np.median(latency_ms))]])
    best = _one_more(rtt_ms, latency_ms, visit, levels, lines, scale, None)
    assert best is not None
    while best.count < MAX_MODES:
        better = _one_more(rtt_ms, latency_ms, visit, levels, lines, scale, best)
        if better is None:
            break
        best = better
    return _greatest_first(best, rtt_ms, latency_ms, levels)


def only(modes: Modes, kept: list[int]) -> Modes:
    """`modes` with the `kept` lines alone; who was on another is on none."""
    import numpy as np

    old = modes.mixture
    place = np.full(old.count + 1, -1, dtype=np.int_)
    place[kept] = np.arange(len(kept))
    gone = [index for index in range(old.count) if index not in kept]
    nowhere = old.belongs[:, [*gone, old.count]].sum(1)
    mixture = Mixture(
        old.slope[kept],
        old.intercept_ms[kept],
        old.scale_ms[kept],
        old.share[kept],
        np.column_stack((old.belongs[:, kept], nowhere)),
        old.log_likelihood,
    )
    return Modes(mixture, place[modes.members], modes.apart[kept])


def near_line(modes: Modes, mode: int, rtt_ms: Values, latency_ms: Values) -> Truths:
    """Whether requests lie within NEAR_SCALES of a line, whichever they are members of."""
    import numpy as np

    mixture = modes.mixture
    off = np.abs(latency_ms - mixture.intercept_ms[mode] - mixture.slope[mode] * rtt_ms)
    return np.asarray(off <= NEAR_SCALES * mixture.scale_ms[mode], dtype=np.bool_)


def _with_tails(mixture: Mixture, rtt_ms: Values, latency_ms: Values) -> Indexes:
    """The line of each request, shape (n,); the number of lines stands for none."""
    import numpy as np

    members: Indexes = mixture.belongs.argmax(1)
    off = np.abs(latency_ms[:, None] - mixture.at(rtt_ms))
    nearest = off.argmin(1)
    ordered = np.sort(off, axis=1)
    close = ordered[:, 0] <= TAIL_MS
    if mixture.count > 1:
        close &= ordered[:, 0] < ordered[:, 1] / 2
    lost = (members == mixture.count) & close
    members[lost] = nearest[lost]
    return members


def _greatest_first(mixture: Mixture, rtt_ms: Values, latency_ms: Values, levels: Levels) -> Modes:
    """Modes in the order of their shares, counted where all of them can be told apart."""
    import numpy as np

    apart = told_apart(mixture, levels.rtt_ms)
    members = _with_tails(mixture, rtt_ms, latency_ms)
    told: Truths = np.all(apart, axis=0)[levels.of]
    counts = np.bincount(members[told], minlength=mixture.count + 1)[:-1]
    order = np.lexsort((-mixture.share, -counts))
    place = np.append(np.argsort(order), -1)
    sorted_mixture = Mixture(
        mixture.slope[order],
        mixture.intercept_ms[order],
        mixture.scale_ms[order],
        mixture.share[order],
        mixture.belongs[:, [*order, mixture.count]],
        mixture.log_likelihood,
    )
    return Modes(sorted_mixture, place[members], apart[order])


def told_apart(mixture: Mixture, rtt_ms: Values) -> Truths:
    """Whether each line can be told from all others at each of `rtt_ms`: shape (K, L)."""
    import numpy as np

    apart: Truths = np.all(_pairs_apart(mixture, rtt_ms), axis=1)
    return apart


def _pairs_apart(mixture: Mixture, rtt_ms: Values) -> Truths:
    """Shape (K, K, L); a line counts as apart from itself."""
    import numpy as np

    at = mixture.at(rtt_ms).T
    reach = APART_SCALES * (mixture.scale_ms[:, None] + mixture.scale_ms[None, :])
    far = np.abs(at[:, None, :] - at[None, :, :]) > np.maximum(reach, MIN_APART_MS)[..., None]
    own: Truths = np.eye(mixture.count, dtype=bool)[..., None]
    return far | own


def _one_more(
    rtt_ms: Values,
    latency_ms: Values,
    visit: Indexes,
    levels: Levels,
    lines: Values,
    scale_ms: float,
    now: Mixture | None,
) -> Mixture | None:
    """`now` with the line that explains the most of what it does not; None: none is worth it."""
    import numpy as np

    n = latency_ms.size
    scatter = scatter_density(latency_ms)
    if now is None:
        density = np.full(n, scatter)
        width = scale_ms
    else:
        residuals = latency_ms[:, None] - now.at(rtt_ms)
        rest = max(1 - float(now.share.sum()), 0.002)
        density = (now.share * densities(residuals, now.scale_ms)).sum(1) + rest * scatter
        width = float(now.scale_ms.min())
    if now is not None:
        lines = lines[_elsewhere(lines, now, levels)]
        if lines.size == 0:
            return None
    gain, share = gains(rtt_ms, latency_ms, lines, width, density)
    left = np.ones(gain.size, dtype=bool)
    best: Mixture | None = None
    # The guess is a little off the line, so it gains less than the line will.
    needed = 0.25 * _PARAMETERS * math.log(n)
    for _ in range(_TRIES):
        index = int(np.where(left, gain, -math.inf).argmax())
        if not left[index] or (now is not None and gain[index] < needed):
            break
        line = lines[index]
        tried = _with(rtt_ms, latency_ms, now, line, float(share[index]), width)
        if now is None:
            if best is None or tried.bic() < best.bic():
                best = tried
        elif _admitted(tried, rtt_ms, latency_ms, visit, levels) and tried.bic() < min(
            now.bic(), math.inf if best is None else best.bic()
        ):
            best = tried
        distance = np.abs((lines - line) @ np.array([levels.rtt_ms, np.ones(levels.count)]))
        left &= distance.max(1) > 3 * width
    return best


def _elsewhere(lines: Values, now: Mixture, levels: Levels) -> Truths:
    """Which of `lines` have a chance to be told from those of `now`: shape (L,)."""
    import numpy as np

    at = lines[:, 1:] + lines[:, :1] * levels.rtt_ms
    off = np.abs(at[:, None, :] - now.at(levels.rtt_ms).T)
    # A guess is a little off its line: so a little less than what is asked for in the end.
    reach = np.maximum(MIN_APART_MS, APART_SCALES * 2 * now.scale_ms) * 0.7
    elsewhere: Truths = ((off > reach[:, None]).sum(2) >= MIN_LEVELS_APART).all(1)
    return elsewhere


def _with(
    rtt_ms: Values,
    latency_ms: Values,
    now: Mixture | None,
    line: Values,
    share: float,
    scale_ms: float,
) -> Mixture:
    """The likeliest mixture near `now` and `line`."""
    import numpy as np

    old = np.array([]) if now is None else now.share
    return maximize(
        rtt_ms,
        latency_ms,
        np.append([] if now is None else now.slope, line[0]),
        np.append([] if now is None else now.intercept_ms, line[1]),
        np.append([] if now is None else now.scale_ms, 2 * scale_ms),
        np.append(old * (1 - share), share),
    )


def _admitted(
    tried: Mixture, rtt_ms: Values, latency_ms: Values, visit: Indexes, levels: Levels
) -> bool:
    """Whether each line of `tried` is a mode by the rules above."""
    import numpy as np

    n = latency_ms.size
    if tried.share.min() < max(MIN_SHARE, MIN_REQUESTS / n) or tried.slope.min() < -0.25:
        return False
    pairs = _pairs_apart(tried, levels.rtt_ms)
    if pairs.sum(2).min() < MIN_LEVELS_APART:
        return False
    owner = tried.belongs.argmax(1)
    sizes = np.bincount(levels.of, minlength=levels.count)
    for mode in range(tried.count):
        at = np.bincount(levels.of[owner == mode], minlength=levels.count)
        present = at >= np.maximum(1, 0.25 * tried.share[mode] * sizes)
        apart = pairs[mode].all(0)
        if (present | ~apart).sum() < MIN_LEVELS or (present & apart).sum() < MIN_LEVELS_APART:
            return False
    return _everywhere(tried, owner, visit, levels) and _valleys(
        tried, pairs, rtt_ms, latency_ms, levels
    )


def _everywhere(tried: Mixture, owner: Indexes, visit: Indexes, levels: Levels) -> bool:
    """Whether each lesser line has requests in about as many visits as its share promises.

    A visit that is slower by some milliseconds, or for half of its requests, had a busy machine.
    Two or three such visits make a line, and no mode. A line beside one of the same slope must also
    keep its distance, and be about as sharp and as evenly spread, because the tail of a mode runs
    beside it. What has another slope and a great share need not share visits: a leader may have
    moved in between.
    """
    import numpy as np

    apart = told_apart(tried, levels.rtt_ms)
    at = tried.at(levels.rtt_ms)
    main = int(tried.share.argmax())
    off = np.abs(tried.slope[:, None] - tried.slope[None, :])
    for mode in range(tried.count):
        if mode == main:
            continue
        told = apart[mode][levels.of]
        share = max(float((owner[told] == mode).mean()), 1 / told.size)
        nearest = float(np.delete(off[mode], mode).min())
        if nearest >= CLEARLY_ANOTHER_SLOPE and share >= GREAT_SHARE:
            continue
        sizes = np.bincount(visit[told])
        here = sizes > 0
        counts = np.bincount(visit[told], weights=owner[told] == mode)[here]
        expected = float((1 - (1 - share) ** sizes[here]).sum())
        if int((counts > 0).sum()) < MIN_VISITS_SEEN * expected:
            return False
        if nearest >= PARALLEL:
            continue
        beside = [k for k in range(tried.count) if k != mode and off[mode, k] < PARALLEL]
        distance = np.abs(at[:, beside] - at[:, [mode]])
        if ((distance >= MIN_PARALLEL_MS).sum(0) < min(MIN_LEVELS, levels.count)).any():
            return False
        lots = sizes[here] * share * (1 - share)
        uneven = float(((counts - sizes[here] * share) ** 2).sum() / max(lots.sum(), 1e-12))
        # What is far away may be broader: a delayed acknowledgement comes 40 to 48 ms later.
        sharp = max(MAX_BROADER * tried.scale_ms[main], float(np.median(distance)) / 12)
        if uneven > MAX_UNEVEN or tried.scale_ms[mode] > sharp:
            return False
    return True


def _valleys(
    tried: Mixture, pairs: Truths, rtt_ms: Values, latency_ms: Values, levels: Levels
) -> bool:
    """Whether between neighbouring lines there are fewer requests than on the lesser of the two.

    The tail of one mode passes for a second one where only likelihoods are compared. A tail has no
    valley between itself and the crowd.
    """
    import numpy as np

    at = tried.at(rtt_ms)
    for first in range(tried.count):
        for second in range(first + 1, tried.count):
            others = [k for k in range(tried.count) if k not in (first, second)]
            low = np.minimum(at[:, first], at[:, second])[:, None]
            high = np.maximum(at[:, first], at[:, second])[:, None]
            between_them = ((at[:, others] > low) & (at[:, others] < high)).any(1)
            here = pairs[first, second][levels.of] & ~between_them
            if not here.any():  # a third line lies between them everywhere
                continue
            gap = at[here, second] - at[here, first]
            # 0 on the first line, 1 on the second; a band is a third of the way wide.
            place = (latency_ms[here] - at[here, first]) / gap
            between = int(((place > 1 / 3) & (place < 2 / 3)).sum())
            crowd = [int((np.abs(place - end) < 1 / 6).sum()) for end in (0, 1)]
            if between > 0.5 * min(crowd):
                return False
    return True
