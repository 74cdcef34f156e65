"""What ordinary studies are compared in, for one endpoint and placement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from wanlat.analysis.compare.difference import Difference, of_shares, of_statistic
from wanlat.analysis.compare.finding import Finding, absent
from wanlat.analysis.compare.model import FAILURES, MEAN, MEDIAN, OUTLIERS
from wanlat.analysis.statistics import tukey_outliers
from wanlat.analysis.summary import ok_ms

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

MIN_OK = 6
"""Of fewer successful requests no interval of the median holds 95 % (docs/statistics.md)."""


def findings(old: pd.DataFrame, new: pd.DataFrame, seed: Sequence[int]) -> list[Finding]:
    """Every quantity of one endpoint and placement, from its measured rows (one or more each)."""
    import numpy as np

    failed = [int((rows["outcome"] != "ok").sum()) for rows in (old, new)]
    failures = Finding(
        FAILURES,
        failed[0] / len(old),
        failed[1] / len(new),
        of_shares(failed[0], len(old), failed[1], len(new)),
    )
    before, after = ok_ms(old), ok_ms(new)
    if min(before.size, after.size) < MIN_OK:
        whys = [
            f"only {values.size} requests succeeded, and {MIN_OK} are needed."
            if values.size < MIN_OK
            else None
            for values in (before, after)
        ]
        absences = []
        for quantity, of in ((MEDIAN, np.median), (MEAN, np.mean)):
            figures = [float(of(values)) if values.size else None for values in (before, after)]
            absences.append(absent(quantity, figures[0], figures[1], whys))
        return [*absences, failures]
    rng = np.random.default_rng(list(seed))
    outliers = [tukey_outliers(values) for values in (before, after)]
    return [
        Finding(
            MEDIAN,
            float(np.median(before)),
            float(np.median(after)),
            _of_medians(before, after, rng),
        ),
        Finding(
            MEAN,
            float(np.mean(before)),
            float(np.mean(after)),
            of_statistic(before, after, np.mean, rng),
        ),
        failures,
        Finding(
            OUTLIERS,
            outliers[0] / before.size,
            outliers[1] / after.size,
            of_shares(outliers[0], before.size, outliers[1], after.size),
        ),
    ]


def _of_medians(old: Values, new: Values, rng: np.random.Generator) -> Difference:
    """Of two medians, no more surely than requests moved from the one to the other.

    Latencies lie in clumps, a round trip apart. Where two are about equally full, the median is in
    either by chance, and resamples of one run hardly show it.
    """
    import numpy as np

    found = of_statistic(old, new, np.median, rng)
    cut = (float(np.median(old)) + float(np.median(new))) / 2
    beyond = [int((values > cut).sum()) for values in (old, new)]
    moved = of_shares(beyond[0], old.size, beyond[1], new.size)
    return replace(found, p=max(found.p, moved.p))
