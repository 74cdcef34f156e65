"""Pages made of many bundles, and that the stored ones are what the commands make of them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
from drill_bundles import stalled, write_drill

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


def test_a_bucket_that_was_filled_first_is_another_question(tmp_path: Path) -> None:
    filled = RESULTS / "for-maintainers" / "list-objects"
    page, _ = write_index([OF_ROUND_TRIPS / "five-sites", filled], tmp_path)
    garage = next(row for row in rows_of(page) if row.startswith("| ListObjects | five-sites | G"))
    assert garage.endswith("| one cluster |")


def test_what_was_measured_on_two_clusters_says_both(tmp_path: Path) -> None:
    bundle = OF_ROUND_TRIPS / "five-sites"
    again = shutil.copytree(bundle, tmp_path / "again")
    rows = pd.read_parquet(again / "samples.parquet")
    is_fewer = (rows["system"] == "garage") & (rows["seq"] % 3 == 1)
    rows[~is_fewer].to_parquet(again / "samples.parquet")
    page, _ = write_index([bundle, again], tmp_path)
    garage = next(row for row in rows_of(page) if row.startswith("| PutObject | five-sites | Gar"))
    assert garage.count("2: ") == 2 and garage.endswith(" | 2 clusters |")
    page, _ = write_index([bundle], tmp_path / "one")
    minio = next(row for row in rows_of(page) if row.startswith("| PutObject | five-sites | MinIO"))
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
    places = [tmp_path / "garage", tmp_path / "bob"]
    write_drill(places[0], name="one-way-cut", series=("garage", "2.5.0"), troubles=[stalled()])
    write_drill(places[1], name="flapping", series=("bob", "2.1.0"), troubles=[stalled()])
    (page,) = write_index(places, tmp_path / "index")
    _, _, flapping, cut = rows_of(page)  # of Bob, of Garage
    assert flapping.split(" | ")[2:] == ["pass: none lost; back in 5.07 s", "not run |"]
    assert cut.split(" | ")[2:] == ["not run", "pass: none lost; back in 5.07 s |"]


def test_without_a_bundle_and_without_a_place_there_is_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"no bundle of round trips .* `wanlat run round-trips`"):
        write_index([tmp_path], tmp_path / "index")
    for page in ("--index", "--claims"):
        asked = here("report", page, str(tmp_path))
        assert asked.returncode == 2 and "-o DIR" in asked.stderr
    asked = here("report", "--claims", str(tmp_path), "-o", str(tmp_path / "claims"))
    assert asked.returncode == 2 and "no bundle below" in asked.stderr
