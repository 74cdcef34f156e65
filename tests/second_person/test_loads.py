"""What pages say of loads on several clusters, computed again; once they are measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.second_person import raw
from tests.second_person.pages import agrees, number, numbers, tables


def of_page(page: str, bundle: str, column: str) -> tuple[pd.DataFrame, Path]:
    """The table of a page with that column, and the bundle that it is of."""
    directory = raw.RESULTS / page / bundle
    if not directory.exists():
        pytest.skip(f"{page}/{bundle} is not measured yet")
    (table,) = [each for each in tables(directory.parent / "README.md") if column in each]
    return table, directory


def check(cell: str, each: Sequence[float], slack: float = 2e-3) -> None:
    """The cell is the mean of clusters, with Student's interval."""
    value, low, high = numbers(cell)
    mean, half = np.mean(each), stats.t.ppf(0.975, len(each) - 1) * stats.sem(each)
    assert agrees(value, float(mean), slack), (cell, each)
    near = 0.25 * half + slack * abs(mean)
    assert abs(number(low) - (mean - half)) <= near, (cell, each)
    assert abs(number(high) - (mean + half)) <= near, (cell, each)


def test_static_files() -> None:
    table, bundle = of_page("static-files", "clusters", "requests per s [95 %]")
    assert len(table) == 4
    for _, cells in table.iterrows():
        runs = [
            raw.load(directory).iloc[0]
            for values, directory in raw.points(bundle)
            if values["system"] == cells["server"].lower()
            and values["connection"] == cells["connection"]
        ]
        assert len(runs) == 5 and not any(each["failed"] for each in runs)
        check(cells["requests per s [95 %]"], [each["operations_per_s"] for each in runs])
        check(cells["mean ms"], [each["mean_ms"] for each in runs])
        check(cells["p99 ms"], [each["p99_ms"] for each in runs], 0.01)


DEPLOYMENTS: dict[str, dict[str, Any]] = {
    "one drive": {"system": "minio", "drives": 1},
    "four drives": {"system": "minio", "drives": 4},
    "four nodes, `least_conn`": {"system": "minio-nginx", "balance": "least_conn"},
    "four nodes, `round_robin`": {"system": "minio-nginx", "balance": "round_robin"},
    "Garage, four nodes": {"system": "garage"},
}


def directories(bundle: Path, where: dict[str, Any]) -> list[Path]:
    found = [
        directory for values, directory in raw.points(bundle) if where.items() <= values.items()
    ]
    assert len(found) == 5, where
    return found


def test_mixed_load_with_both_balances() -> None:
    table, bundle = of_page("mixed-load", "balances", "CPU ms a request")
    assert [*table["deployment"]] == [*DEPLOYMENTS]
    for _, cells in table.iterrows():
        of = directories(bundle, DEPLOYMENTS[cells["deployment"]])
        loads = [raw.load(each).set_index("operation") for each in of]
        rates = [float(each["operations_per_s"].sum()) for each in loads]
        check(cells["operations/s [95 %]"], rates)
        check(cells["read, mean ms"], [each.loc["GetObject", "mean_ms"] for each in loads])
        check(cells["write, mean ms"], [each.loc["PutObject", "mean_ms"] for each in loads])
        check(cells["CPU ms a request"], [raw.cpu_ms(each) for each in of], 0.05)


def test_slowest_operations_and_the_probe_client() -> None:
    table, bundle = of_page("mixed-load", "balances", "loaded median ms")
    assert len(table) == 2 * len(DEPLOYMENTS)
    for _, cells in table.iterrows():
        of = directories(bundle, DEPLOYMENTS[cells["deployment"]])
        loads = [raw.load(each).set_index("operation") for each in of]
        check(cells["p99 ms"], [each.loc[cells["operation"], "p99_ms"] for each in loads], 0.01)
        beside = [
            raw.probe_client(each).set_index("endpoint").loc[cells["operation"]] for each in of
        ]
        for column, name in (
            ("idle median ms", "idle"),
            ("loaded median ms", "loaded"),
            ("times [95 %]", "times"),
        ):
            check(cells[column], [each[name] for each in beside], 0.02)


def test_cpu_time_of_each_node_behind_nginx() -> None:
    table, bundle = of_page("mixed-load", "balances", "busiest over mean")
    assert len(table) == 2
    for _, cells in table.iterrows():
        balance = cells[""].strip("`")
        of = directories(bundle, {"system": "minio-nginx", "balance": balance})
        shares = []
        for each in of:
            _, busy, _ = raw.cpu(each, "node", "front")
            shares.append(100 * (busy.iloc[-1] - busy.iloc[0]) / np.ptp(busy.index))
        for node in ("n1", "n2", "n3", "n4"):
            check(cells[node], [each["node", node] for each in shares], 0.05)
        check(cells["nginx"], [each["front", "n1"] for each in shares], 0.05)
        check(cells["busiest over mean"], [raw.busiest_over_mean(each) for each in of], 0.05)
