"""The index of many bundles: a row an operation, with every cluster that it was measured on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from answers import changing
from drill_bundles import stalled, write_drill

from tests.bundles import Does, write_round_trips_bundle
from tests.command_line import here
from wanlat.analysis.report.index import write_index
from wanlat.bundle.errors import BundleError

PUT = ("etcd", "Put", "unknown")


def rows_of(page: Path) -> list[str]:
    return [line for line in page.read_text("utf-8").splitlines() if line.startswith("| ")]


def puts(directory: Path, *does: Does, seed: int = 1, node: str = "n1", **study: Any) -> Path:
    """Write a run of etcd's Put, whose leader is n1 and whose own protocol promises two."""
    directory.mkdir(parents=True)
    promised = {"endpoint": "Put", "placement": "unknown", "round_trips": 2, "why": "to the leader"}
    system = {"name": "etcd", "version": "3.4.23", "roles": {"leader": ["n1"]}}
    system["promised_round_trips"] = [promised]
    write_round_trips_bundle(
        directory,
        does={PUT: does},
        versions={"etcd": "3.4.23"},
        seed=seed,
        manifest={"systems": [system], "target": {"node": node, "site": "dc1"}},
    )
    with changing(directory / "manifest.json") as document:
        document["study"] |= study
    return directory


def cells(page: Path) -> list[list[str]]:
    return [row.strip("| ").split(" | ") for row in rows_of(page) if row.startswith("| Put ")]


def test_a_bucket_that_was_filled_first_is_another_question(tmp_path: Path) -> None:
    plain = puts(tmp_path / "plain", Does(1, 2))
    filled = puts(tmp_path / "filled", Does(1, 3), prefill={"objects": 100})
    page, _ = write_index([plain, filled], tmp_path / "index")
    (row,) = cells(page)
    assert row[-1] == "one cluster"


def test_what_was_measured_on_two_clusters_says_both(tmp_path: Path) -> None:
    places = [
        puts(tmp_path / str(seed), Does(share, 1), Does(1 - share, 3), seed=seed)
        for seed, share in ((1, 0.7), (2, 0.4))
    ]
    page, chart = write_index(places, tmp_path / "index")
    (row,) = cells(page)
    assert row[4].count("1: ") == 2 and row[-1] == "2 clusters"
    assert chart.stat().st_size > 10_000
    (one,) = cells(write_index(places[:1], tmp_path / "one")[0])
    assert one[4].count("1: ") == 1 and one[-1] == "one cluster"


def test_of_several_clusters_there_is_the_mean_and_whether_the_target_leads(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        puts(tmp_path / f"leader-{seed}", Does(1, 1), seed=seed)
        puts(tmp_path / f"follower-{seed}", Does(1, 2), seed=seed, node="n2")
    page, _ = write_index([tmp_path], tmp_path / "index")
    leader, follower = cells(page)
    assert (leader[3], follower[3]) == ("leader", "follower")
    assert leader[4].startswith("1.00 [") and follower[4].startswith("2.00 [")
    assert leader[6] == follower[6] == "2", "by its protocol"
    assert leader[-1] == follower[-1] == "3 clusters"


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
        refused = here("report", page, str(tmp_path))
        assert refused.returncode == 2 and "-o DIR" in refused.stderr
    refused = here("report", "--claims", str(tmp_path), "-o", str(tmp_path / "claims"))
    assert refused.returncode == 2 and "no bundle below" in refused.stderr
