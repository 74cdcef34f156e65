"""Whether measured delays are draws from the requested distribution, and as related as asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wanlat.emulator.calibration.law import Law, Values, path_law
from wanlat.topologies.resolve import Impairment

PROBABILITIES = (0.005, 0.01, 0.025, *(step / 20 for step in range(1, 20)), 0.975, 0.99, 0.995)
"""At which quantiles of delays are told."""

_PLACES = 4096  # of a law, to compute its moments
_FEW, _HEAVY = 30, 6.0  # samples; excess kurtosis (an exponential distribution has 6)
_EARLY_MS = 0.1  # clocks, and wire sends a few microseconds ahead
_UNRELATED = 0.05  # draws that far apart that their correlation is below this count as independent


@dataclass(frozen=True)
class Fit:
    """How well ``n`` delays fit: the largest distance of the distributions, and the spread.

    ``spread`` is the mean distance of delays from their requested median, by the requested one.
    ``p_value`` is that of both tests: Kolmogorov-Smirnov, and whether the spread is one.
    ``early_p_value`` is that of the one-sided test for delays that are shorter than their draws may
    be. A machine makes packets late and never early, so a small one is the link's.
    """

    n: int
    distance: float
    spread: float
    p_value: float
    early_p_value: float


def fit(delays_ms: Values, steps: Sequence[Impairment], errors_ms: Values) -> Fit:
    """Test one-way delays, in the order in which they were drawn, against what ``steps`` ask for.

    ``errors_ms`` are those of the same path with jitter off.
    """
    from scipy import stats

    independent = delays_ms[:: apart(steps)]
    law = lawful(steps, errors_ms)
    # typed for single values; scipy calls it with all of them
    found = stats.kstest(independent, law.cdf)  # type: ignore[arg-type]
    spread, spread_p_value = _spread(independent, law)
    p_value = min(1.0, 2 * min(float(found.pvalue), spread_p_value))  # Bonferroni
    draws = path_law(steps)
    early = stats.kstest(independent + _EARLY_MS, draws.cdf, alternative="greater")  # type: ignore[arg-type]
    return Fit(
        int(independent.size),
        float(found.statistic),
        spread,
        p_value,
        float(early.pvalue),
    )


def _spread(delays_ms: Values, law: Law) -> tuple[float, float]:
    """Return the measured spread by the requested one, and how probable one that far from it is.

    Kolmogorov-Smirnov hardly sees a jitter that is some ten percent off. Where the tail is so heavy
    that a mean is not normal, nothing is concluded: p is one.
    """
    from scipy import stats

    places = (np.arange(_PLACES) + 0.5) / _PLACES
    expected = law.quantiles(places.tolist())
    middle = float(np.median(expected))
    off, measured_off = np.abs(expected - middle), np.abs(delays_ms - middle)
    spread = float(measured_off.mean() / off.mean())
    if delays_ms.size < _FEW or float(stats.kurtosis(off)) > _HEAVY:
        return spread, 1.0
    error = float(off.std()) / math.sqrt(delays_ms.size)
    return spread, float(2 * stats.norm.sf(abs(measured_off.mean() - off.mean()) / error))


def lawful(steps: Sequence[Impairment], errors_ms: Values) -> Law:
    """Return the distribution that measured delays must have."""
    law = path_law(steps)
    return law.later_by(errors_ms) if errors_ms.size else law


def apart(steps: Sequence[Impairment]) -> int:
    """Return how many draws apart two packets are that count as independent."""
    strongest = max((abs(step.correlation) for step in steps if step.jitter_ns), default=0.0)
    if strongest == 0:
        return 1
    return math.ceil(math.log(_UNRELATED) / math.log(min(strongest, 0.999)))


def requested_correlation(steps: Sequence[Impairment]) -> float:
    """Return the correlation of the delays of two packets that follow each other.

    Exact where one step has jitter; else each step's counts by its variance.
    """
    jittered = [step for step in steps if step.jitter_ns]
    variances = [
        (step.jitter_ns**2) / (3 if step.distribution == "uniform" else 1) for step in jittered
    ]
    related = sum(
        step.correlation * variance for step, variance in zip(jittered, variances, strict=True)
    )
    return related / sum(variances)


def correlation(delays_ms: Values) -> float:
    """Return the correlation of neighbours in ``delays_ms``; nan is a delay that is not known.

    Of normal scores (the delays' ranks, as quantiles of the normal distribution), which is what
    ``correlation`` means in a topology, whatever the distribution.
    """
    from scipy import stats

    known = ~np.isnan(delays_ms)
    scores = np.full(delays_ms.size, np.nan)
    ranks = stats.rankdata(delays_ms[known])
    scores[known] = stats.norm.ppf((ranks - 0.5) / max(1, ranks.size))
    earlier, later = scores[:-1], scores[1:]
    both = ~np.isnan(earlier) & ~np.isnan(later)
    if both.sum() < 3:
        return math.nan
    return float(np.corrcoef(earlier[both], later[both])[0, 1])


def correlation_p_value(measured: float, requested: float, n: int) -> float:
    """Return how probable a measured correlation is that is at least that far off.

    By the large-sample deviation of an autocorrelation (Bartlett 1946): sqrt((1 - rho^2) / n).
    """
    from scipy import stats

    deviation = math.sqrt(max(1e-6, 1 - requested**2) / max(1, n))
    return float(2 * stats.norm.sf(abs(measured - requested) / deviation))
