"""Which timeout: what is said of values of it, and that no more is said than intervals support."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from answers import answer_of, changing, notes_of

from tests.bundles import price, timeouts, write_advice, write_envelope
from wanlat.analysis.figures.advice import ADVICE, enough
from wanlat.analysis.figures.envelope import ENVELOPE
from wanlat.analysis.section import Answer
from wanlat.bundle.run import read_run


def advice_of(directory: Path, **settings: Any) -> Answer:
    write_advice(directory, **settings)
    return answer_of(ADVICE, directory)


def test_each_value_has_its_limit_and_its_price(tmp_path: Path) -> None:
    answer = advice_of(tmp_path)
    rows = answer.figures.rows
    assert [row["value_ms"] for row in rows] == [500, 1000, 5000]
    assert [row["with_ms"] for row in rows] == [{"heartbeat": ms} for ms in (50, 100, 500)]
    default = rows[1]
    assert default["answered_s"] == pytest.approx(1.2, rel=1e-5)
    # Six kills: the least and the greatest cover 97 % of medians.
    assert default["answered_s_ci95"] == [pytest.approx(0.96), pytest.approx(1.44)]
    assert default["led_s"] == pytest.approx(1.1, rel=1e-5)
    assert default["idle_kb_s"] == 20
    assert "Of one cluster each" in notes_of(answer)
    document = answer.to_json()
    assert [row["timeout"] for row in document["choices"]] == ["election"] * 3
    assert "timeouts" not in document["choices"][0]
    assert len(document["limits"]) == 9
    chart = answer.charts()["advice"]
    assert chart.get_label() == (
        "MinIO, election: 500 ms holds up to 30.0 ms [29.4, 30.6] RTT, costs 0.6 [0.48, 0.72] s; "
        "5 s holds up to 1900 ms [1863, 1938] RTT, costs 6.0 [4.8, 7.2] s"
    )


def test_a_value_moves_a_limit_where_intervals_do_not_meet(tmp_path: Path) -> None:
    answer = advice_of(tmp_path, limits_ms={500.0: 294.0, 1000.0: 300.0, 5000.0: 1900.0})
    moved = {(row["value_ms"], row["what"]): row["moved"] for row in answer.to_json()["limits"]}
    assert moved[500, "RTT without loss"] == "no difference"
    assert moved[5000, "RTT without loss"] == "more"
    assert moved[1000, "RTT without loss"] is None
    broken = {row["what"]: row["broken"] for row in answer.to_json()["limits"]}
    assert broken == {
        "RTT without loss": "n1 led, then n2",
        "loss at RTT 5 ms": None,
        "RTT at 1 % lost": None,
    }


def test_the_makers_rule_is_held_against_the_limit_found(tmp_path: Path) -> None:
    limits_ms = {500.0: 30.0, 1000.0: 100.0, 5000.0: 1900.0}
    answer = advice_of(tmp_path, limits_ms=limits_ms)
    rows = answer.figures.rows
    assert [row["rule_ms"] for row in rows] == [50, 100, 500]
    assert [enough(row) for row in rows] == ["not enough", "not decided", "enough"]


def test_a_limit_beyond_the_search_is_no_number(tmp_path: Path) -> None:
    beyond = {"limit": {"inside": 2000.0, "outside": None}}
    nowhere = {"limit": {"inside": None, "outside": 5.0}}
    answer = advice_of(tmp_path, of_point={5000.0: beyond, 500.0: nowhere})
    first, _, last = answer.grids()[0].rows
    assert "nowhere" in first and "beyond 2000 ms" in last
    moved = {(row["value_ms"], row["what"]): row["moved"] for row in answer.to_json()["limits"]}
    assert moved[5000, "RTT without loss"] == "more", "300 ms at most is less than 2000 at least"
    assert [enough(row) for row in answer.figures.rows] == ["not enough", "enough", "enough"]
    assert answer.charts().keys() == {"advice"}


def test_kills_that_nobody_survived_are_no_number_either(tmp_path: Path) -> None:
    never = {"price": price([None] * 4 + [1.0, 2.0], lost=1)}
    seldom = {"price": price([1.0] * 5 + [None])}
    answer = advice_of(tmp_path, of_point={500.0: never, 1000.0: seldom})
    first, second, _ = answer.figures.rows
    assert (first["answered_s"], first["unanswered"]) == (None, 4)
    assert (second["answered_s"], second["answered_s_ci95"]) == (1.0, None)
    said = notes_of(answer)
    assert "more than 15" in answer.grids()[0].rows[0]
    assert "no write was acknowledged in time: MinIO (4 of 6, 15 s); MinIO (1 of 6, 15 s)" in said
    assert "Acknowledged writes were lost by kills" in said
    assert answer.charts().keys() == {"advice"}


def test_of_several_clusters_intervals_are_over_them(tmp_path: Path) -> None:
    answer = advice_of(tmp_path, replicates=3)
    default = answer.figures.rows[1]
    assert (default["clusters"], default["kills"]) == (3, 18)
    low, high = default["answered_s_ci95"]
    assert low == pytest.approx(1.2) == high, "the clusters' medians are the same"
    assert default["limits"][0]["limit"] == pytest.approx(303, rel=1e-3)
    assert "Of one cluster each" not in notes_of(answer)


def test_clusters_without_a_limit_on_the_axis_are_not_passed_over(tmp_path: Path) -> None:
    """Of three clusters one has a limit, and two hold as far as was searched."""

    write_advice(tmp_path, replicates=3)
    for number in (2, 3):
        (point,) = tmp_path.glob(f"points/*5000ms*replicate-{number}")
        with changing(point / "envelope.json") as document:
            document["systems"][0]["limits"][0] |= {"inside": 2000.0, "outside": None}
    answer = answer_of(ADVICE, tmp_path)
    last = answer.figures.rows[-1]
    assert last["limits"][0]["limit"] is None
    assert enough(last) == "not decided"
    moved = {(row["value_ms"], row["what"]): row["moved"] for row in answer.to_json()["limits"]}
    assert moved[5000, "RTT at 1 % lost"] == "more"
    assert moved[5000, "RTT without loss"] == "no difference"
    assert answer.charts().keys() == {"advice"}


def test_the_map_of_several_values_shows_the_limits_of_each(tmp_path: Path) -> None:
    write_advice(tmp_path, replicates=3)
    (figure,) = answer_of(ENVELOPE, tmp_path).charts().values()
    panels = [axes for axes in figure.axes if axes.patches]
    assert len(panels) == 3
    for axes in panels:
        low, high = axes.get_ylim()
        tops = [bar.get_y() + bar.get_height() for bar in axes.patches]
        assert all(low < top < high for top in tops), (low, tops, high)


def test_one_cluster_has_a_row_and_without_a_price_there_is_none(tmp_path: Path) -> None:
    write_envelope(tmp_path / "a", price=price([1.0, 1.5]), timeouts=timeouts(1000.0))
    answer = answer_of(ADVICE, tmp_path / "a")
    (row,) = answer.figures.rows
    assert (row["answered_s"], row["answered_s_ci95"]) == (1.25, None)
    assert "limits" not in {table.key for table, _ in answer.tables}
    assert answer.charts().keys() == {"advice"}
    write_envelope(tmp_path / "b", timeouts=timeouts(1000.0))
    assert ADVICE.answer(read_run(tmp_path / "b")) is None
