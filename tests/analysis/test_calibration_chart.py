"""The picture of a calibration shows each pair, what is wrong, and can be read."""

from __future__ import annotations

from typing import Any

import numpy as np
from chart_checks import assert_apart, texts_of
from matplotlib.figure import Figure

from tests.bundles import TITLES
from wanlat.analysis.charts import calibration, style
from wanlat.bundle.documents import Titles

PROBABILITIES = [0.01, 0.25, 0.5, 0.75, 0.99]


def pair(source: str, target: str, rtt_ms: float, jitter_ms: float) -> dict[str, Any]:
    """An entry as calibration writes it, all right."""
    quantiles = [rtt_ms / 2 - jitter_ms * (0.5 - p) for p in PROBABILITIES]
    way = {
        "distribution": "uniform",
        "p_value": 0.4,
        "requested_quantiles_ms": quantiles,
        "measured_quantiles_ms": [q + 0.02 for q in quantiles],
    }
    return {
        "from": source,
        "to": target,
        "requested_rtt_ms": rtt_ms,
        "bare_rtt_ms": {"p50": 0.05},
        "rtt_ms": {"min": rtt_ms - jitter_ms, "p50": rtt_ms + 0.02, "p99": rtt_ms + jitter_ms},
        "error_ms": {"p50": 0.012, "p99": 0.14},
        "jitter": {"there": way, "back": way} if jitter_ms else None,
        "verdict": "pass",
    }


def document(nodes: int, *, jitter_ms: float = 4.0) -> dict[str, Any]:
    pairs = [
        pair(f"n{a}", f"n{b}", 100.0 + 3 * a + b, jitter_ms)
        for a in range(nodes)
        for b in range(nodes)
        if a != b
    ]
    tolerance = {"median_ms": 0.5, "near_median_ms": 0.15, "near_ms": 2.0, "p99_ms": 2.0}
    return {
        **{"topology": "somewhere", "backend": "wire", "verdict": "pass"},
        **{"tolerance": tolerance, "quantiles": PROBABILITIES, "pairs": pairs},
    }


def everything() -> dict[str, Any]:
    made = document(3)
    for number, each in enumerate(made["pairs"]):
        bps = 2e7 * (1 + number % 2)
        each["rate"] = {"requested_bps": bps, "error": 0.002, "allowed_error": 0.02}
    return made


def marks(figure: Figure, marker: str, colour: str | None = None, panel: int = 0) -> list[float]:
    """The y of each mark of a shape, and of a colour, in a panel: the first is that of errors."""
    return [
        float(y)
        for line in figure.axes[panel].get_lines()
        if line.get_marker() == marker and colour in (None, line.get_color())
        for y in np.asarray(line.get_ydata(), float)
    ]


def test_the_labs_of_several_systems_share_the_places_of_pairs() -> None:
    made = everything()
    of_two = [pair | {"system": name} for name in ("garage", "minio") for pair in made["pairs"]]
    figure = calibration.draw(made | {"pairs": of_two}, Titles(TITLES))
    assert_apart(figure)
    for marker in ("^", "s"):
        assert len(marks(figure, marker)) == 2 * 6
    assert len(figure.axes[0].get_xticks()) == 6
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.texts] == ["lab of Garage", "lab of MinIO"]


def test_every_pair_is_there_with_median_and_99th_percentile_and_the_bare_path() -> None:
    figure = calibration.draw(document(20), Titles())
    shown = [y for one in ("v", "o") for y in marks(figure, one)]
    assert shown.count(0.012) == shown.count(0.14) == len(marks(figure, "x")) == 380


def test_a_failed_pair_and_one_from_which_nothing_came_are_red_and_told() -> None:
    made = document(6, jitter_ms=0.0)
    made["pairs"][2] |= {"verdict": "fail", "error_ms": {"p50": 3.0, "p99": 20.0}}
    made["pairs"][3] |= {"verdict": "fail", "error_ms": None, "rtt_ms": None}
    made["verdict"] = "fail"
    figure = calibration.draw(made, Titles())
    assert_apart(figure)
    assert len(figure.axes) == 2  # no panel for what was not asked
    words = texts_of(figure)
    assert "Calibration FAILED: somewhere, p99 error at most 20.0 ms" in words
    assert "nothing came back" in words
    assert any("28 of 30 ordered pairs passed" in text for text in words)
    red = [y for one in ("v", "o") for y in marks(figure, one, style.ALARM)]
    assert {y for y in red if not np.isnan(y)} == {20.0, 3.0}


def test_a_rate_that_could_not_be_measured_is_marked() -> None:
    made = everything()
    made["pairs"][0]["rate"] |= {"error": None}
    figure = calibration.draw(made, Titles())
    assert len(figure.axes) == 4
    assert len(marks(figure, "x", style.ALARM, panel=2)) == 1
