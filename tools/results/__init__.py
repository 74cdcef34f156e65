"""Results: measuring what docs/results lists, and making its pages (`__main__.py`)."""

from __future__ import annotations

from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
RESULTS = CHECKOUT / "docs" / "results"
LISTED, TO_MEASURE = RESULTS / "results.yaml", RESULTS / "to-measure.yaml"


def listed() -> dict[str, str]:
    """Return the command of each bundle, by its place below docs/results."""
    found: dict[str, str] = yaml.safe_load(LISTED.read_text("utf-8"))
    return found


def known() -> dict[str, str]:
    """Return likewise the commands of bundles that are measured, and of those that are to be."""
    to_measure: dict[str, str] = yaml.safe_load(TO_MEASURE.read_text("utf-8"))
    return listed() | to_measure
