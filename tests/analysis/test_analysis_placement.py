"""Local and remote requests are counted apart, and what says nothing of it reads as before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from synthetic_bundles import BOB, BOB_ENDPOINTS, BOTH, FOUR_SYSTEMS, GARAGE, QUORUM, MakeBundle

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.summary import EndpointSummary, Group, Summary, summarize
from wanlat.bundle.errors import BundleError

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "endpoint-latency"
ONLY_BOB: dict[str, Any] = {"systems": [BOB], "endpoints": ["Get", "Ping"], "placed": {"bob": BOTH}}


def summary_of(path: Path) -> Summary:
    return summarize(read_bundle(path))


def entry_of(summary: Summary, system: str, endpoint: str, placement: str) -> EndpointSummary:
    (entry,) = (
        e
        for e in summary.endpoints
        if (e.series.system, e.endpoint, e.placement) == (system, endpoint, placement)
    )
    return entry


def test_local_and_remote_are_never_averaged_together(make_bundle: MakeBundle) -> None:
    local, remote = list(np.linspace(1, 2, 100)), list(np.linspace(90, 110, 100))
    values = {("bob", "Get", "local"): local, ("bob", "Get", "remote"): remote}
    summary = summary_of(make_bundle(**ONLY_BOB, values_ms=values))
    assert [e.placement for e in summary.endpoints] == ["local", "remote", "unknown"]
    for placement, expected in (("local", local), ("remote", remote)):
        entry = entry_of(summary, "bob", "Get", placement)
        assert entry.n == 100
        assert entry.latency is not None
        assert entry.latency.mean_ms == pytest.approx(np.mean(expected))
        assert entry.latency.max_ms == pytest.approx(max(expected))


def test_every_entry_says_its_placement(make_bundle: MakeBundle) -> None:
    entries = summary_of(make_bundle(**ONLY_BOB)).to_json()["endpoints"]
    assert [(e["endpoint"], e["placement"], e["n"]) for e in entries] == [
        ("Get", "local", 100),
        ("Get", "remote", 100),
        ("Ping", "unknown", 100),
    ]


def test_a_row_is_ordered_by_system_then_placement(make_bundle: MakeBundle) -> None:
    summary = summary_of(make_bundle(**FOUR_SYSTEMS))
    row = [e.group for e in summary.endpoints if e.endpoint in ("GetObject", "Get")]
    assert [(g.series.system, g.endpoint, g.placement) for g in row] == [
        ("garage", "GetObject", "unknown"),
        ("minio", "GetObject", "unknown"),
        ("bob", "Get", "local"),
        ("bob", "Get", "remote"),
        ("quorum", "Get", "local"),
        ("quorum", "Get", "remote"),
    ]
    assert summary.endpoint_names[-2:] == ["Exist", "Ping"]


def test_systems_keep_the_order_of_the_run(make_bundle: MakeBundle) -> None:
    # Bob, which the run took first, has nothing in the first row.
    path = make_bundle(
        systems=[BOB, QUORUM],
        endpoints={"bob": ["Get"], "quorum": ["ListBuckets", "GetObject"]},
        manifest={"study": {}},
    )
    summary = summary_of(path)
    assert [one.system for one in summary.series] == ["bob", "quorum"]
    assert [e.endpoint for e in summary.endpoints] == ["ListBuckets", "Get", "GetObject"]


def test_bundles_without_the_column_read_as_unknown(make_bundle: MakeBundle) -> None:
    without = make_bundle(name="without", systems=[GARAGE])
    table = pd.read_parquet(without / "samples.parquet")
    assert "placement" not in table.columns
    alike = [summary_of(without).to_json()]
    for name, value in (("empty", None), ("told", "unknown")):
        path = make_bundle(name=name, systems=[GARAGE])
        table.assign(placement=value).to_parquet(path / "samples.parquet")
        alike.append(summary_of(path).to_json())
    assert alike[0] == alike[1] == alike[2]
    assert {entry["placement"] for entry in alike[0]["endpoints"]} == {"unknown"}


@pytest.mark.parametrize("name", ["five-sites", "three-datacenters"])
def test_results_from_before_keep_every_figure(name: str) -> None:
    committed = json.loads((RESULTS / name / "summary.json").read_text(encoding="utf-8"))
    made = summary_of(RESULTS / name).to_json()
    made.pop("in_rtts")  # these were published before there was one
    for entry in [*committed["endpoints"], *made["endpoints"]]:
        assert entry.pop("placement", "unknown") == "unknown"
    assert made == committed


def test_a_placement_that_is_none_is_refused(make_bundle: MakeBundle) -> None:
    path = make_bundle(**ONLY_BOB)
    table = pd.read_parquet(path / "samples.parquet")
    table.loc[4, "placement"] = "nearby"
    table.to_parquet(path / "samples.parquet")
    with pytest.raises(BundleError, match="row 5 has a placement that is not local, remote, unk"):
        read_bundle(path)


def test_an_interval_has_the_seed_of_its_placement(make_bundle: MakeBundle) -> None:
    values = [100 + (i * 7919) % 83 / 3 for i in range(100)]
    same = {("bob", "Get", placement): values for placement in BOTH}
    path = make_bundle(**ONLY_BOB, values_ms=same)
    # In one order, so that nothing but the seed is different.
    table = pd.read_parquet(path / "samples.parquet").sort_values(["total_ns", "placement"])
    table.to_parquet(path / "samples.parquet")
    both = summary_of(path)
    local, remote = (entry_of(both, "bob", "Get", placement).latency for placement in BOTH)
    assert local is not None
    assert remote is not None
    assert local.mean_ci95_ms != remote.mean_ci95_ms
    assert local.mean_ci95_ms == pytest.approx(remote.mean_ci95_ms, abs=0.5)

    table[table["placement"] == "local"].to_parquet(path / "samples.parquet")
    alone = entry_of(summary_of(path), "bob", "Get", "local").latency
    assert alone is not None
    assert alone.mean_ci95_ms == local.mean_ci95_ms


def test_a_group_is_told_by_all_three(make_bundle: MakeBundle) -> None:
    summary = summary_of(make_bundle(**FOUR_SYSTEMS))
    groups = [entry.group for entry in summary.endpoints]
    assert len(set(groups)) == len(groups) == 2 * 5 + 2 * 9
    assert all(isinstance(group, Group) for group in groups)


def test_notes_say_what_placement_means(make_bundle: MakeBundle) -> None:
    summary = summary_of(make_bundle(**ONLY_BOB))
    (note,) = (note for note in summary.notes if "replica" in note)
    assert note.startswith("Local: the node that was asked holds a replica of the key")
    assert "No figure is over both" in note
    assert not any("one placement" in note for note in summary.notes)


def test_notes_tell_placements_apart(make_bundle: MakeBundle) -> None:
    values = {("bob", "Get", "remote"): [100.0 + i for i in range(15)]}
    failures = {("bob", "Get"): (2, 1)}  # of the local ones, which come first
    summary = summary_of(make_bundle(**ONLY_BOB, values_ms=values, failures=failures))
    notes = " ".join(summary.notes)
    assert "Bob 2.1.0-alpha.12 Get, local 2 fail, 1 unknown of 100" in notes
    few = "No interval of the mean from fewer than 20 successful requests: "
    assert f"{few}Bob 2.1.0-alpha.12 Get, remote." in notes
    assert "Bob 2.1.0-alpha.12 Get, local; Bob 2.1.0-alpha.12 Get, remote." in notes  # p99


@pytest.mark.parametrize("placement", BOTH)
def test_a_system_of_one_placement_is_noted(make_bundle: MakeBundle, placement: str) -> None:
    path = make_bundle(
        systems=[BOB], endpoints=BOB_ENDPOINTS, placed={"bob": [placement]}, n=20, rtt_ms=None
    )
    notes = summary_of(path).notes
    assert any(note.endswith(f": Bob 2.1.0-alpha.12 {placement}.") for note in notes), notes
