"""What pages say was tried for a cause that they give, computed again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.second_person import raw
from tests.second_person.pages import agrees, number, numbers, tables
from tests.second_person.test_loads import check

CAUSES = raw.RESULTS / "for-maintainers"


def of_clusters(bundle: str, system: str, endpoint: str) -> list[pd.Series]:
    """The latencies of an endpoint, ms, of each cluster of a system."""
    each = [raw.samples(point) for _, point in raw.points(raw.RESULTS / bundle)]
    chosen = [rows[(rows["system"] == system) & (rows["endpoint"] == endpoint)] for rows in each]
    return [rows["ms"] for rows in chosen if len(rows)]


COLUMNS = {
    "median": ("garage", 0.5),
    "median with TCP_NODELAY": ("garage-nodelay", 0.5),
    "p95": ("garage", 0.95),
    "p95 with TCP_NODELAY": ("garage-nodelay", 0.95),
}


def test_garage_with_tcp_nodelay() -> None:
    page = CAUSES / "garage-nagle.md"
    (table,) = [each for each in tables(page) if "p95" in each]
    assert len(table) == 3
    told = re.search(r"whole round trips then: (.+)\.\n", page.read_text())
    assert told is not None
    for trips, cells in zip(numbers(told[1]), table.to_dict("records"), strict=True):
        for column, (system, share) in COLUMNS.items():
            of = of_clusters("for-maintainers/nodelay", system, str(cells["ms [95 %]"]))
            assert len(of) == 5 and {len(each) for each in of} == {100}
            check(str(cells[column]), [each.quantile(share) for each in of], 5e-3)
            if column == "median with TCP_NODELAY":
                assert agrees(trips, float(np.mean([each.median() for each in of])) / 100, 5e-3)


@pytest.mark.parametrize("row", [0, 1])
def test_minio_with_shorter_pauses(row: int) -> None:
    page = CAUSES / "minio-lock-race.md"
    (table,) = [each for each in tables(page) if "slow, % [95 %]" in each]
    assert len(table) == 2
    cells = table.iloc[row]
    of = of_clusters("for-maintainers/lock-retry", ["minio", "minio-short-pause"][row], "PutObject")
    assert len(of) == 5 and {len(each) for each in of} == {300}
    check(cells["median ms [95 %]"], [each.median() for each in of], 0.02)
    shares = [100 * (each > 3 * each.quantile(0.25)).mean() for each in of]
    check(cells["slow, % [95 %]"], shares, 0.02)
    together = pd.concat(of)
    slow = together[together > 3 * together.quantile(0.25)]
    quartiles: Sequence[float] = slow.quantile([0.25, 0.5, 0.75]).tolist()
    said = numbers(cells["slow ones, quartiles ms"])
    assert all(agrees(*pair, 0.01) for pair in zip(said, quartiles, strict=True))
    assert number(cells["max ms"]) == pytest.approx(together.max(), abs=0.6)


def test_bob_at_a_node_of_the_third_datacenter() -> None:
    text = (raw.RESULTS / "bob" / "README.md").read_text()
    said = re.search(r"Exist of a remote key took ([^\]]+\]) ms, and Get still ([^\]]+\]) ms", text)
    assert said is not None
    points = [point for _, point in raw.points(raw.RESULTS / "bob" / "third-datacenter")]
    for endpoint, cell in zip(("Exist", "Get"), said.groups(), strict=True):
        of = [
            rows[(rows["endpoint"] == endpoint) & (rows["placement"] == "remote")]["ms"].median()
            for rows in map(raw.samples, points)
        ]
        assert len(of) == 5
        check(cell, of, 5e-3)


STORES = ("etcd", "Redis", "PostgreSQL", "Garage", "MinIO")
MEASURED = [store for store in STORES if (raw.RESULTS / "envelope" / store.lower()).exists()]


@pytest.mark.parametrize("store", MEASURED)
def test_round_trips_at_an_envelopes_limit(store: str) -> None:
    text = (raw.RESULTS / "envelope" / "README.md").read_text()
    (section,) = re.findall(rf"^## {store}\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    points = [point for _, point in raw.points(raw.RESULTS / "envelope" / store.lower())]
    told = TOLD.findall(section)
    assert len(told) == (1 if store in ("Redis", "PostgreSQL") else 2)
    for cell, endpoint in told:
        each = [_in_rtts(point, endpoint).median() for point in points]
        assert len(each) == 5
        check(cell, each, 6e-3)


TOLD = re.compile(r"([\d.]+ \[[\d., ]+\]) RTTs for (\w+)")


def _in_rtts(point: Path, endpoint: str) -> pd.Series:
    """How long answered requests took on the farthest network without loss that held."""
    (of,) = raw.document(point / "envelope.json")["systems"]
    (limit,) = [x for x in of["limits"] if x["axis"] == "rtt" and x["at"]["loss"] == 0]
    numbers_of = [
        test["number"]
        for test in of["tests"]
        if (test["network"]["rtt_ms"], test["network"]["loss"]) == (limit["inside"], 0)
    ]
    rows = raw.table(point, "samples")
    rows = rows[(rows["phase"] == "window") & (rows["outcome"] == "ok")]
    rows = rows[rows["rtt_step"].isin(numbers_of) & (rows["endpoint"] == endpoint)]
    assert len(rows) >= 20
    return rows["elapsed_100us"] / 10 / limit["inside"]


@pytest.mark.parametrize("store", MEASURED)
def test_no_trial_of_an_envelope_that_held_was_repeated(store: str) -> None:
    """Each repetition is another chance to fail, so it is for what this machine spoiled alone."""
    repeated = 0
    for _, point in raw.points(raw.RESULTS / "envelope" / store.lower()):
        (of,) = raw.document(point / "envelope.json")["systems"]
        rows = raw.table(point, "samples")
        rows = rows[rows["phase"].isin(["window", "back"])]
        trial = rows["drill_client"].str.partition("-")[0].rename("trial")
        ok = rows["outcome"].eq("ok").groupby([rows["rtt_step"], trial, rows["phase"]])
        shares = ok.mean().unstack("phase")
        # Who was back at once has sent nothing in the last phase.
        held = (shares["window"] >= 0.99) & (shares["back"].fillna(1.0) >= 0.99)
        of_test = held.groupby("rtt_step").sum()
        for test in of["tests"]:
            # Where another node led requests tell nothing.
            told = [each for each in test["trials"] if "answered" not in (each["broken"] or "")]
            repeated += max(0, int(of_test.get(test["number"], 0)) - len(told))
    assert repeated <= 5


def test_what_a_list_of_garage_moves_over_links() -> None:
    (table,) = [each for each in tables(CAUSES / "garage-list-objects.md") if "250" in each]
    cells = table.iloc[0]
    moved: dict[int, list[float]] = {}
    for values, point in raw.points(CAUSES / "list-objects"):
        (row,) = raw.round_trips(point).to_dict("records")
        moved.setdefault(int(values["prefill.objects"]), []).append(row["cost"][1] / 1000)
    assert [len(of) for of in moved.values()] == [5] * 4
    for objects, of in moved.items():
        for told, kb in zip(cells[f"{objects:,}"].split(", "), of, strict=True):
            assert agrees(told, kb, 0.02)
