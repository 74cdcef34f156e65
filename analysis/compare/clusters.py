"""Two sets of clusters compared: bundles of replicates, in which a cluster is one value.

What a start of a store draws (who leads, which replica is asked) is then in the interval, and needs
no rule of its own: the difference is between the means over clusters, with Student's intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wanlat.analysis.bundle import Bundle, read_bundle
from wanlat.analysis.compare.differences import Figure, Figures
from wanlat.analysis.names import listing
from wanlat.analysis.stats.intervals import of_mean
from wanlat.analysis.sweep import REPEATED, is_sweep, read_sweep
from wanlat.bundle.errors import BundleError

_KEY = "clusters"
_OF_REQUESTS = {"round_trips", "chain_round_trips", "latency_at_rtt_ms", "intercept_ms"}
"""Of these a cluster's value is the mean over its requests: which of several ways is the most
frequent one is a toss, and what they take on average is not."""


def read(directory: Path) -> Bundle:
    """Read a run, or replicates as if they were one run with several clusters.

    Raises BundleError where a matrix varies anything else, and where no cluster can be used.
    """
    if not is_sweep(directory):
        return read_bundle(directory)
    sweep = read_sweep(directory)
    varied = [each.name for each in sweep.parameters if sweep.varies(each.name)]
    if others := [name for name in varied if name not in REPEATED]:
        raise BundleError(
            f"{directory} is a matrix over {listing(others, 6)}. Compared are runs and replicates: "
            f"give a point, {directory}/points/NAME."
        )
    left_out = sweep.untrusted
    points = [point for point in sweep.complete if point.name not in left_out]
    clusters = [point.bundle for point in points if point.bundle is not None]
    if not clusters:
        raise BundleError(f"{directory} has no complete cluster whose network was right.")
    import pandas as pd

    systems = {e["name"]: e for one in clusters for e in one.manifest.get("systems") or ()}
    own = {key: sweep.manifest.get(key) for key in ("status", "started", "seed")}
    return Bundle(
        directory,
        {**clusters[0].manifest, **own, "systems": list(systems.values())},
        calibration=clusters[0].calibration,
        given=pd.concat([one.samples for one in clusters], ignore_index=True),
        derived={_KEY: clusters},
    )


def of(bundle: Bundle) -> Sequence[Bundle]:
    """The clusters of replicates; of a single run that one."""
    found: Sequence[Bundle] = bundle.derived.get(_KEY, (bundle,))
    return found


def over(clusters: Sequence[Figures]) -> Figures:
    """The figures of one endpoint over its clusters: means, with Student's intervals."""
    return {key: _over(key, clusters) for key in dict.fromkeys(k for one in clusters for k in one)}


def _over(key: str, clusters: Sequence[Figures]) -> Figure:
    values = [value for one in clusters if key in one for value in _value(key, one[key])]
    if len(values) < 2:
        return Figure(
            None, why=f"{len(values)} of {len(clusters)} clusters have it; two are needed."
        )
    of_each = np.array(values)
    return Figure(float(of_each.mean()), of_mean(of_each), freedom=len(values) - 1)


def _value(key: str, figure: Figure) -> list[float]:
    """What a cluster says; nothing where it has no such figure."""
    value = figure.value
    if value is not None and figure.ways is not None and key in _OF_REQUESTS:
        value = float(np.nanmean(figure.ways.costs))
    return [] if value is None or math.isnan(value) else [value]
