"""Figures of samples, as they stand in ``calibration.json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Values = np.ndarray[Any, np.dtype[np.float64]]


def milliseconds(values_ns: Sequence[int]) -> Values:
    """Return nanoseconds as milliseconds."""
    return np.asarray(values_ns, dtype=np.float64) / 1e6


def figures(values: Values) -> dict[str, float | int]:
    """Return count, mean, deviation and quantiles of at least one value."""
    return {
        "n": int(values.size),
        "mean": float(values.mean()),
        "stdev": float(values.std(ddof=1)) if values.size > 1 else 0.0,
        "min": float(values.min()),
        "p50": float(np.median(values)),
        "p99": float(np.percentile(values, 99)),
        "max": float(values.max()),
    }
