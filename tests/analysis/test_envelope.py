"""How far apart a cluster may be: limits of one cluster, of several, and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from answers import answer_of, notes_of

from tests.bundles import MINIO, STUDY, write_envelope, write_sweep
from wanlat.analysis.figures.envelope import ENVELOPE


def test_the_limits_of_a_cluster_are_between_what_held_and_what_did_not(tmp_path: Path) -> None:
    write_envelope(tmp_path)
    answer = answer_of(ENVELOPE, tmp_path)
    first, loss, at_loss = answer.figures.rows
    assert first["limit"] == pytest.approx(300)
    assert first["limit_ci95"] == [pytest.approx(300 / 1.02, rel=1e-5), pytest.approx(306)]
    assert (loss["limit"], loss["at"]) == (pytest.approx(10), "RTT 5 ms")
    assert (at_loss["limit"], at_loss["at"]) == (pytest.approx(150), "1 % lost")
    said = notes_of(answer)
    assert "2 of 3 pairs of regions are inside (frankfurt–sydney 290 ms; london–new-york" in said
    assert "99% of 20 requests a second are answered within 1s" in said
    assert "that again 3s after a link was cut for 1s" in said
    assert "Hysteresis" not in said
    assert "Drift" not in said
    tests = answer.to_json()["tests"]
    assert [(each["number"], each["verdict"]) for each in tests] == [
        (0, "holds"),
        (1, "fails"),
        (2, "holds"),
    ]
    assert answer.charts()["envelope"].get_label() == "MinIO holds up to 300 ms [294, 306] RTT"


@pytest.mark.parametrize(
    ("limit", "test", "said"),
    [
        ({"has_hysteresis": True, "back": 120.0}, {}, "Hysteresis: coming from beyond"),
        ({"changed": [250.0]}, {}, "Drift, or no sharp limit: a network had two verdicts"),
        ({}, {"lost": 1}, "Acknowledged writes were lost"),
        ({}, {"stale": 1}, "Acknowledged writes were still missing on a node"),
        ({}, {"restarted": True}, "Nodes were restarted"),
    ],
)
def test_what_a_reader_must_know_of_a_limit_is_said(
    tmp_path: Path, limit: Mapping[str, Any], test: Mapping[str, Any], said: str
) -> None:
    write_envelope(tmp_path, limit=limit, test=test, options={"minio": {"drives": 4}})
    answer = answer_of(ENVELOPE, tmp_path)
    assert said in notes_of(answer)
    assert answer.charts().keys() == {"envelope"}


def test_limits_of_several_clusters_have_an_interval_over_them(tmp_path: Path) -> None:
    limits_ms = [290.0, 300.0, 310.0, 305.0, 295.0]

    def point(directory: Path, _series: tuple[str, str], at: Mapping[str, Any]) -> None:
        write_envelope(directory, limit_ms=limits_ms[at["replicate"] - 1])

    study = {**STUDY, "replicates": 5}
    replicates = {"replicate": [1, 2, 3, 4, 5]}
    write_sweep(tmp_path, replicates, systems=(MINIO,), study=study, write_point=point)
    answer = answer_of(ENVELOPE, tmp_path)
    first, *others = answer.figures.rows
    assert (first["clusters"], first["trials"], len(others)) == (5, 60, 2)
    assert first["limit"] == pytest.approx(math.prod(limits_ms) ** 0.2, rel=1e-5)
    low, high = first["limit_ci95"]
    # Student's: 2.776 standard errors of five, which are 7.9 / sqrt(5) ms; and half of what the
    # ends of each lie apart.
    assert (low, high) == (pytest.approx(284.3, abs=0.5), pytest.approx(316.2, abs=0.5))
    assert "tests" not in answer.to_json() or not answer.to_json()["tests"]
    assert "Of one cluster" not in notes_of(answer)
    assert answer.charts().keys() == {"envelope"}


def test_what_a_matrix_varies_has_limits_of_its_own(tmp_path: Path) -> None:
    def point(directory: Path, _series: tuple[str, str], at: Mapping[str, Any]) -> None:
        write_envelope(directory, limit_ms=300.0 if at["nodes"] == 3 else 200.0)

    write_sweep(tmp_path, {"nodes": [3, 5]}, systems=(MINIO,), study=STUDY, write_point=point)
    answer = answer_of(ENVELOPE, tmp_path)
    assert [row["limit"] for row in answer.figures.rows[::3]] == [pytest.approx(300), 200]
    assert answer.charts()["envelope"].get_label() == (
        "MinIO, nodes 3 holds up to 300 ms [294, 306] RTT; "
        "MinIO, nodes 5 holds up to 200 ms [196, 204] RTT"
    )
