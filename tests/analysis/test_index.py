"""Pages made of many bundles, and that the stored ones are what the commands make of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.command_line import here
from tools.results import RESULTS, measure
from wanlat.analysis.report.index import write_index
from wanlat.bundle.errors import BundleError

OF_ROUND_TRIPS = RESULTS / "round-trips"


def rows_of(page: Path) -> list[str]:
    return [line for line in page.read_text("utf-8").splitlines() if line.startswith("| ")]


def test_the_stored_index_is_what_the_command_makes(tmp_path: Path) -> None:
    page, chart = write_index([RESULTS], tmp_path / "index")
    made = page.read_text("utf-8").replace(os.path.relpath(RESULTS, page.parent), "..")
    stored = RESULTS / "index"
    assert made == (stored / page.name).read_text("utf-8")
    assert measure.small(chart) == (stored / chart.name).read_bytes()


def test_the_stored_verdicts_are_what_the_command_makes(tmp_path: Path) -> None:
    out = tmp_path / "publications"
    asked = here("report", "--claims", str(RESULTS), "-o", str(out))
    assert asked.returncode == 0, asked.stderr
    made = (out / "README.md").read_text("utf-8").replace(os.path.relpath(RESULTS, out), "..")
    assert made == (RESULTS / "publications" / "README.md").read_text("utf-8")


def test_what_was_measured_on_two_clusters_says_both(tmp_path: Path) -> None:
    names = ("five-sites", "garage-again-five-sites")
    page, _ = write_index([OF_ROUND_TRIPS / name for name in names], tmp_path)
    garage = next(row for row in rows_of(page) if row.startswith("| PutObject | five-sites | Gar"))
    minio = next(row for row in rows_of(page) if row.startswith("| PutObject | five-sites | MinIO"))
    assert garage.count("2: ") == 2 and garage.endswith("| 268.8; 269.3 | 2 clusters |")
    assert "5: 36 %, 9: 50 %" in minio and minio.endswith("| one cluster |")
    assert not any("not run" in row or "drill" in row for row in rows_of(page))


def test_of_several_clusters_there_is_the_mean_and_who_leads_is_said(tmp_path: Path) -> None:
    places = [RESULTS / "other-systems" / where for where in ("leader", "follower")]
    page, _ = write_index(places, tmp_path)
    puts = [
        row.split(" | ") for row in rows_of(page) if row.startswith("| Put | five-sites | etcd")
    ]
    assert [row[3:8] for row in puts] == [
        ["leader", "1.00 [1.00, 1.00]", "1", "1", "1"],
        ["follower", "2.00 [2.00, 2.00]", "2", "2", "1"],  # by its protocol 2, at least 1
    ]
    assert [row[-1] for row in puts] == ["5 clusters |"] * 2


def test_a_drill_that_a_system_has_not_taken_says_so(tmp_path: Path) -> None:
    drills = RESULTS / "drills" / "once"
    places = [drills / "garage" / "one-way-cut-3dc", drills / "bob" / "flapping-3dc"]
    (page,) = write_index(places, tmp_path)
    _, _, flapping, cut = rows_of(page)  # of Bob, of Garage
    assert flapping.split(" | ")[2:] == ["pass: none lost; back in 58.2 s", "not run |"]
    assert cut.split(" | ")[2:] == ["not run", "pass: none lost; back in 82.9 s |"]


def test_without_a_bundle_and_without_a_place_there_is_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"no bundle of round trips .* `wanlat run round-trips`"):
        write_index([tmp_path], tmp_path / "index")
    for page in ("--index", "--claims"):
        asked = here("report", page, str(tmp_path))
        assert asked.returncode == 2 and "-o DIR" in asked.stderr
    asked = here("report", "--claims", str(tmp_path), "-o", str(tmp_path / "claims"))
    assert asked.returncode == 2 and "no bundle below" in asked.stderr
