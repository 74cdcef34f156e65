"""Predicted and measured latencies of placements: how far off, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from answers import answer_of, notes_of

from tests.bundles import write_placements
from wanlat.analysis.figures.placements import PLACEMENTS, errors, order, placed
from wanlat.analysis.summary import summarize
from wanlat.bundle.matrix import read_matrix


def test_predictions_are_compared_over_clusters(tmp_path: Path) -> None:
    write_placements(tmp_path)
    answer = answer_of(PLACEMENTS, tmp_path)
    rows = {(row["rank"], row["target"], row["endpoint"]): row for row in answer.figures.rows}
    assert len(rows) == 8
    put = rows[2, "us", "PutObject"]
    assert (put["predicted_ms"], put["measured_ms"], put["clusters"]) == (160, 161, 5)
    # Five clusters 0.05 ms apart: 2.776 × 0.0791 / √5.
    assert put["error_ms_ci95"] == pytest.approx([1 - 0.0982, 1 + 0.0982], abs=1e-3)
    assert put["error"] == pytest.approx(1 / 160)
    assert rows[1, "eu", "GetObject"]["error"] is None  # no time at all is predicted
    off = errors(answer.figures.rows)
    assert (off["median_error_ms"], off["worst_error_ms"]) == (1, 1)
    assert off["median_error_ms_ci95"] == pytest.approx([0.902, 1.098], abs=1e-3)
    assert (off["median_error"], off["worst_error"]) == (
        pytest.approx(1 / 80, rel=1e-4),
        pytest.approx(1 / 40, rel=1e-4),
    )
    said = notes_of(answer)
    assert "Prediction error: median 1.0 [0.9, 1.1] ms, 1.2 [1.1, 1.4] %; worst 1.0 [" in said
    assert "Outside its interval over clusters is the prediction of 8 of 8 rows." in said
    assert "More than predicted, by 1.0 to 1.0 ms: 8 rows. So much take what nodes" in said
    assert "by more than nodes take" not in said
    assert "Less than predicted" not in said
    title = answer.charts()["placements"].get_label()
    assert title == (
        "quorum: latencies of 2 placements are off their prediction by 1.0 ms (median), 1.0 ms "
        "(worst)"
    )


def test_what_all_clients_wait_for_is_the_matrix_and_what_was_measured(tmp_path: Path) -> None:
    write_placements(tmp_path)
    found = placed(answer_of(PLACEMENTS, tmp_path).figures)
    assert found is not None
    # Half of the clients send to eu (a Put of four takes 40 ms), half to us (40 and 80 ms), half of
    # them from 60 ms away.
    assert [row["predicted_ms"] for row in found.rows] == [45, 75]
    assert [row["measured_ms"] for row in found.rows] == [46, 76]
    assert order(answer_of(PLACEMENTS, tmp_path).figures) == (
        "Measured, the placements are in the order that was predicted."
    )


@pytest.mark.parametrize(
    ("added_ms", "said"),
    [
        (
            {(1, "us", "PutObject"): 30.0},
            "by more than nodes take: there the store waits for other nodes than its definition "
            "says, or again, or jitter has it wait for the slower: PutObject of placement 1 at us "
            "(31 ms).",
        ),
        (
            {(2, "eu", "PutObject"): -20.0},
            "Less than predicted: a nearer node answers than the definition says, or fewer round "
            "trips are needed: PutObject of placement 2 at eu (−19 ms).",
        ),
    ],
)
def test_where_the_model_is_wrong_it_is_said(
    tmp_path: Path, added_ms: Mapping[tuple[int, str, str], float], said: str
) -> None:
    write_placements(tmp_path, added_ms)
    answer = answer_of(PLACEMENTS, tmp_path)
    assert said in notes_of(answer)
    assert len(answer.grids()[0].troubled) == 1


def test_another_order_than_predicted_is_said(tmp_path: Path) -> None:
    write_placements(tmp_path, {(1, "eu", "GetObject"): 100.0})
    assert order(answer_of(PLACEMENTS, tmp_path).figures) == (
        "Measured, placements are in another order than predicted: 2 before 1."
    )


def test_one_cluster_has_no_interval(tmp_path: Path) -> None:
    write_placements(tmp_path, replicates=1)
    answer = answer_of(PLACEMENTS, tmp_path)
    assert errors(answer.figures.rows)["median_error_ms_ci95"] is None
    assert "One cluster, so no interval: every row." in notes_of(answer)
    assert "Outside" not in notes_of(answer)
    assert answer.charts().keys() == {"placements"}


def test_averages_of_round_trips_predict_averages(tmp_path: Path) -> None:
    write_placements(tmp_path, source="measured: 1.5 round trips")
    row = answer_of(PLACEMENTS, tmp_path).figures.rows[0]
    assert (row["statistic"], row["error_ms"]) == ("mean", 6)


def test_a_matrix_without_predictions_has_no_such_section(tmp_path: Path) -> None:
    write_placements(tmp_path)
    summary = summarize(read_matrix(tmp_path))
    assert "placements" in summary.shown
    assert not {"clusters", "endpoints"} & summary.shown.keys()
    (tmp_path / "placements.json").unlink()
    assert PLACEMENTS.answer(read_matrix(tmp_path)) is None
    assert "endpoints" in summarize(read_matrix(tmp_path)).shown
