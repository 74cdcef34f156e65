"""What a request costs: bytes over WAN links, bytes that nodes sent, CPU time.

Counters grow by what requests cost, and by what the cluster does of its own accord. The latter is
known from when it was at rest, and taken off; where it never rested it stays in, and that is said.
(It cannot be fitted: with one request always in flight, requests and time are the same column.)

Endpoints are told apart by least squares with no negative cost (Lawson and Hanson 1974): between
two looks the counters grew by the sum of what the requests in between cost, those in flight at a
look by halves. Endpoints are shuffled, so every stretch has another mixture. Intervals resample
stretches of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wanlat.analysis.resources.model import ASKED, REST, Estimate, RequestCost, Window
from wanlat.analysis.resources.use import growth

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

METHOD = (
    "growth of counters while it was asked, less what it grows at rest, over requests; of single "
    "endpoints by non-negative least squares over the stretches between looks, intervals by "
    "resampling stretches (499, seeded)"
)
LEAST_REST_S = 2.0
"""Of a shorter rest nothing is taken off."""
_LEAST_STRETCHES = 5
"""For each endpoint; of fewer they are not told apart."""
_RESAMPLES = 499
_PERCENTS = (2.5, 97.5)


class Counter(NamedTuple):
    """A counter of the whole system: rows of every subject that has part in it, and its column."""

    rows: Sequence[pd.DataFrame]
    column: str
    scale: float = 1.0


Costs = tuple[str | None, int, float, list[Estimate | None]]


def knows_background(windows: Sequence[Window]) -> bool:
    """Whether it rested long enough to know what it does of its own accord."""
    return sum(w.seconds for w in windows if w.kind == REST) >= LEAST_REST_S


def costs_of(
    requests: pd.DataFrame,
    windows: Sequence[Window],
    counters: Sequence[Counter],
    seed: int,
    *,
    apart: bool,
) -> list[Costs]:
    """For all requests together (None), then for each endpoint: its requests, their bytes on
    average, and what each of `counters` grew by one.

    `apart` False: together only, as under load, where every second has the same mixture.
    """
    import numpy as np

    asked = [window for window in windows if window.kind == ASKED]
    inside = np.zeros(len(requests), dtype=bool)
    begin, end = (requests[name].to_numpy("int64") for name in ("begin_ns", "end_ns"))
    for window in asked:
        inside |= (begin >= window.begin_ns - 1) & (begin < window.end_ns)
    requests, begin, end = requests[inside], begin[inside], end[inside]
    if requests.empty:
        return []
    endpoints = list(dict.fromkeys(requests["endpoint"]))
    per_counter = [_Grown.of(counter, windows, asked) for counter in counters]
    found: list[Costs] = [
        (None, len(requests), _mean_bytes(requests), [g.over(requests) for g in per_counter])
    ]
    if not apart:
        return found
    if len(endpoints) == 1:
        return [*found, (endpoints[0], *found[0][1:])]
    names = requests["endpoint"].to_numpy()
    each = [(begin[names == name], end[names == name]) for name in endpoints]
    fitted = [grown.by_endpoint(each, seed) for grown in per_counter]
    return [
        *found,
        *(
            (
                name,
                len(own := requests[names == name]),
                _mean_bytes(own),
                [None if fit is None else fit[place] for fit in fitted],
            )
            for place, name in enumerate(endpoints)
        ),
    ]


class _Grown(NamedTuple):
    """How a counter grew in each stretch between two looks of the windows, less the background."""

    total: float | None
    edges: Sequence[tuple[Values, Values]]
    """Of each window: instants of looks, and by how much it grew between them."""

    @classmethod
    def of(cls, counter: Counter, windows: Sequence[Window], asked: Sequence[Window]) -> _Grown:
        at_rest = [window for window in windows if window.kind == REST]
        background = 0.0
        if knows_background(windows):
            grew = _growth(counter, at_rest)
            background = (grew or 0.0) / sum(window.seconds for window in at_rest)
        total = _growth(counter, asked)
        if total is not None:
            total -= background * sum(window.seconds for window in asked)
        return cls(total, [_stretches(counter, window, background) for window in asked])

    def over(self, requests: pd.DataFrame) -> Estimate | None:
        return None if self.total is None else Estimate(max(0.0, self.total / len(requests)))

    def by_endpoint(
        self, each: Sequence[tuple[Values, Values]], seed: int
    ) -> list[Estimate] | None:
        """What a request of each endpoint costs; None of too few stretches, or alike ones."""
        import numpy as np
        from scipy.optimize import nnls

        pieces = [
            (np.column_stack([_counts(begin, end, t) for begin, end in each]), grew)
            for t, grew in self.edges
            if t.size > 1
        ]
        if self.total is None or not pieces:
            return None
        counts = np.concatenate([piece[0] for piece in pieces])
        grew = np.concatenate([piece[1] for piece in pieces])
        stretches, endpoints = counts.shape
        if stretches < _LEAST_STRETCHES * endpoints or np.linalg.matrix_rank(counts) < endpoints:
            return None
        best, _ = nnls(counts, grew)
        rng = np.random.default_rng([seed, stretches, endpoints])
        resampled = np.array(
            [
                _fitted(counts, grew, np.bincount(rng.integers(0, stretches, stretches)))
                for _ in range(_RESAMPLES)
            ]
        )
        low, high = np.percentile(resampled, _PERCENTS, axis=0)
        return [
            Estimate(float(value), (float(a), float(b)))
            for value, a, b in zip(best, low, high, strict=True)
        ]


def _fitted(counts: Values, grew: Values, weights: NDArray[np.int_]) -> Values:
    """The least squares fit, without negative costs, of stretches that count `weights` times.

    Of as many equations as there are endpoints, which have the same solution: the normal
    equations, by their Cholesky factor.
    """
    import numpy as np
    from scipy.optimize import nnls

    weights = np.pad(weights, (0, grew.size - weights.size))
    weighted = counts * weights[:, None]
    squares = weighted.T @ counts
    # A resample may lack an endpoint; a speck on the diagonal makes its cost 0.
    squares += np.eye(len(squares)) * 1e-9 * max(float(np.trace(squares)), 1e-12)
    factor = np.linalg.cholesky(squares)
    found: Values = nnls(factor.T, np.linalg.solve(factor, weighted.T @ grew))[0]
    return found


def _growth(counter: Counter, windows: Sequence[Window]) -> float | None:
    grew = [growth(rows, windows, counter.column) for rows in counter.rows]
    known = [value for value in grew if value is not None]
    return sum(known) * counter.scale if known else None


def _stretches(counter: Counter, window: Window, background: float) -> tuple[Values, Values]:
    import numpy as np

    looks = [rows["t_ns"].to_numpy("int64") for rows in counter.rows if not rows.empty]
    inside = np.unique(np.concatenate(looks)) if looks else np.zeros(0, dtype="int64")
    inside = inside[(inside > window.begin_ns) & (inside < window.end_ns)]
    t = np.concatenate(([window.begin_ns], inside, [window.end_ns])).astype("float64")
    total = np.zeros(t.size)
    for rows in counter.rows:
        known = rows[rows[counter.column].notna()]
        if not known.empty:
            values = known[counter.column].to_numpy("float64") * counter.scale
            total += np.interp(t, known["t_ns"].to_numpy("float64"), values)
    return t, np.diff(total) - background * np.diff(t) / 1e9


def _counts(begin: Values, end: Values, t: Values) -> Values:
    """How many requests lie in each stretch between instants `t`, by the share of their time."""
    import numpy as np

    took = np.maximum(end - begin, 1.0)
    # How much of all requests was over at each instant: a sum of ramps, one a request.
    over = np.array([np.clip((at - begin) / took, 0.0, 1.0).sum() for at in t])
    return np.diff(over)


def _mean_bytes(requests: pd.DataFrame) -> float:
    return float(requests["object_bytes"].mean())


def request_costs(
    requests: pd.DataFrame,
    windows: Sequence[Window],
    of: tuple[Counter, Counter, Counter],
    seed: int,
    *,
    apart: bool,
) -> tuple[RequestCost, ...]:
    """What requests cost: `of` are the counters of WAN bytes, of sent bytes, of CPU time (ms)."""
    found = costs_of(requests, windows, of, seed, apart=apart)
    return tuple(
        RequestCost(endpoint, count, object_bytes, *estimates)
        for endpoint, count, object_bytes, estimates in found
    )
