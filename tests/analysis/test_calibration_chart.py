"""The picture of a calibration shows each pair, what is wrong, and can be read."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chart_checks import assert_apart, texts_of
from matplotlib.figure import Figure

from wanlat.analysis.charts import calibration, style
from wanlat.bundle.errors import BundleError

PROBABILITIES = [0.01, 0.25, 0.5, 0.75, 0.99]


def pair(source: str, target: str, rtt_ms: float, jitter_ms: float = 0.0) -> dict[str, Any]:
    """An entry as calibration writes it, all right."""
    width = jitter_ms / 2
    quantiles = [rtt_ms / 2 - width + 2 * width * p for p in PROBABILITIES]
    way = {
        "distribution": "uniform",
        "n": 200,
        "distance": 0.03,
        "p_value": 0.4,
        "correlation": None,
        "requested_quantiles_ms": quantiles,
        "measured_quantiles_ms": [q + 0.02 for q in quantiles],
    }
    return {
        "from": source,
        "to": target,
        "requested_rtt_ms": rtt_ms,
        "requested_jitter_ms": jitter_ms,
        "bare_rtt_ms": {"n": 40, "p50": 0.05},
        "rtt_ms": {"n": 200, "min": rtt_ms - jitter_ms + 0.01, "p50": rtt_ms + 0.02,
                   "p99": rtt_ms + jitter_ms + 0.1, "max": rtt_ms + jitter_ms + 0.4},
        "error_ms": {"p50": 0.012, "p99": 0.14},
        "jitter": {"there": way, "back": way} if jitter_ms else None,
        "delivery": None,
        "rate": None,
        "rounds": 1,
        "verdict": "pass",
        "reasons": [],
    }  # fmt: skip


def document(nodes: int, *, jitter_ms: float = 4.0, same: bool = True) -> dict[str, Any]:
    names = [f"n{number}" for number in range(1, nodes + 1)]
    pairs = [
        pair(a, b, 100.0 if same else 5.0 + 3 * i + j, jitter_ms if same else 0.5 + 0.1 * j)
        for i, a in enumerate(names)
        for j, b in enumerate(names)
        if a != b
    ]
    return {
        "topology": "somewhere",
        "backend": "wire",
        "tolerance": {"median_ms": 0.5, "near_median_ms": 0.15, "near_ms": 2.0, "p99_ms": 2.0,
                      "edge_ms": 2.0, "rate": 0.02, "ks_alpha": 1e-4},
        "quantiles": PROBABILITIES,
        "pairs": pairs,
        "overflows": 0,
        "verdict": "pass",
    }  # fmt: skip


def everything() -> dict[str, Any]:
    made = document(3)
    for number, each in enumerate(made["pairs"]):
        each["rate"] = {"requested_bps": 2e7 * (1 + number % 2), "measured_bps": 2.004e7,
                        "error": 0.002, "allowed_error": 0.02, "trains": 5}  # fmt: skip
        each["delivery"] = {
            "sent": 2000, "lost": 22, "duplicated": 9, "damaged": 0, "overtaken": 0, "undelayed": 0,
            "mean_burst": 1.0,
            "requested": {"loss": 0.01, "duplicate": 0.005, "corrupt": 0.0, "overtake": 0.0,
                          "mean_burst": None},
        }  # fmt: skip
    return made


def drawn(made: dict[str, Any]) -> Figure:
    figure = calibration.draw(made)
    figure.canvas.draw()
    return figure


def errors_shown(figure: Figure) -> list[float]:
    """The y of each dot of the panel of errors."""
    return marks(figure, "o")


def marks(figure: Figure, marker: str, colour: str | None = None) -> list[float]:
    """The y of each mark of a shape, and of a colour, in the panel of errors."""
    return [
        float(y)
        for line in figure.axes[0].get_lines()
        if line.get_marker() == marker and colour in (None, line.get_color())
        for y in np.asarray(line.get_ydata())
    ]


@pytest.mark.parametrize(
    "made",
    [document(2), document(6), document(20, same=False), document(3, jitter_ms=0), everything()],
    ids=["one link", "thirty pairs", "twenty sites", "no jitter", "rate and loss"],
)
def test_no_word_lies_on_another(made: dict[str, Any]) -> None:
    assert_apart(drawn(made))


def test_the_labs_of_several_systems_share_the_places_of_pairs() -> None:
    made = document(3)
    of_two = [pair | {"system": name} for name in ("garage", "minio") for pair in made["pairs"]]
    figure = drawn(made | {"pairs": of_two})
    for marker in ("^", "s"):
        assert len(marks(figure, marker)) == 2 * 6
    assert len(figure.axes[0].get_xticks()) == 6
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.texts] == ["lab of Garage", "lab of MinIO"]


def test_every_pair_is_there_with_median_and_99th_percentile_and_the_bare_path() -> None:
    figure = drawn(document(20, same=False))
    assert errors_shown(figure).count(0.012) == errors_shown(figure).count(0.14) == 380
    assert len(marks(figure, "x")) == 380


def test_a_failed_pair_and_one_from_which_nothing_came_are_red_and_told() -> None:
    made = document(6)
    made["pairs"][2] |= {"verdict": "fail", "error_ms": {"p50": 3.0, "p99": 20.0}}
    made["pairs"][3] |= {"verdict": "fail", "error_ms": None, "rtt_ms": None, "jitter": None}
    made["verdict"] = "fail"
    figure = drawn(made)
    words = texts_of(figure)
    assert "Calibration FAILED: somewhere, p99 error at most 20.0 ms" in words
    assert "nothing came back" in words
    assert any("28 of 30 ordered pairs passed" in text for text in words)
    assert set(marks(figure, "o", style.ALARM)) == {20.0, 3.0}


def test_there_is_a_panel_for_what_was_asked_and_none_for_what_was_not() -> None:
    assert len(drawn(everything()).axes) == 5
    assert len(drawn(document(3)).axes) == 3
    assert len(drawn(document(3, jitter_ms=0)).axes) == 2


def test_a_rate_that_could_not_be_measured_is_marked() -> None:
    made = everything()
    made["pairs"][0]["rate"] |= {"measured_bps": None, "error": None}
    (rates,) = [axes for axes in drawn(made).axes if axes.get_title("left").startswith("Rates")]
    assert sum(line.get_marker() == "x" for line in rates.get_lines()) == 1


@pytest.mark.minutes
def test_the_same_document_gives_the_same_bytes(tmp_path: Path) -> None:
    made = everything()
    for name in ("a.svg", "b.svg", "c.png", "d.pdf"):
        style.save_as(calibration.draw(copy.deepcopy(made)), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "c.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "d.pdf").read_bytes()[:4] == b"%PDF"


def test_a_place_that_cannot_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError, match="cannot be written"):
        style.save_as(calibration.draw(document(2)), tmp_path / "file" / "a.png")
