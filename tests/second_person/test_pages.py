"""Every table of docs/results that was measured, computed again by somebody else (`raw.py`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.second_person import raw
from tests.second_person.pages import agrees, number, numbers, tables

RESULTS = raw.RESULTS
SYSTEMS = {"Garage": "garage", "Bob": "bob", "quorum": "quorum", "MinIO": "minio"}
SYSTEMS |= {"MinIO behind nginx": "minio-nginx", "MinIO+nginx": "minio-nginx"}
NETWORKS = ("five-sites", "three-datacenters")


def system_of(cell: str) -> str:
    """ "MinIO 2026-02-12": the name of a system, whatever its version."""
    return next(SYSTEMS[name] for name in sorted(SYSTEMS, key=len)[::-1] if cell.startswith(name))


def with_columns(page: Path, *headers: str) -> list[pd.DataFrame]:
    """The tables of a page that have these columns, each with rows."""
    found = [each for each in tables(page) if set(headers) <= set(each.columns)]
    if not found and (page.parent / "README.md.j2").exists():
        pytest.skip("the page is made from its bundles, and has no such table")
    assert found and all(len(each) for each in found), (page, headers)
    return found


def only(frame: pd.DataFrame, **values: Any) -> Mapping[str, Any]:
    """The row with these values."""
    for name, value in values.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1, values
    return dict(frame.iloc[0])


def check_interval(cell: str, low: float, high: float) -> None:
    """The two last numbers of a cell are an interval, up to what other random numbers make."""
    printed = [*map(number, numbers(cell)[-2:])]
    width = high - low
    slack = 0.2 * width + 0.006 * abs(high)
    assert abs(printed[0] - low) <= slack and abs(printed[1] - high) <= slack, (cell, low, high)


@pytest.mark.parametrize("page", ["endpoint-latency", "bob"])
def test_latencies(page: str) -> None:
    found = with_columns(RESULTS / page / "README.md", "mean [95 %] ms")
    assert len(found) == len(NETWORKS)
    for network, table in zip(NETWORKS, found, strict=True):
        computed = raw.latencies(RESULTS / page / network)
        assert len(table) == len(computed)
        for _, cells in table.iterrows():
            placement = cells.get("placement", "unknown")
            row = only(
                computed,
                system=system_of(cells["system"]),
                endpoint=cells["endpoint"],
                placement=placement,
            )
            assert cells["n"] == str(row["n"])
            version = cells["system"].split(" ")[-1].replace("-", "")
            assert version in row["version"].replace("-", ""), cells
            assert cells["ok/fail/unknown"] == f"{row['ok']}/0/0"
            for column in ("median", "min", "max", "p95", "p99"):
                assert agrees(cells[f"{column} ms"], row[f"{column}_ms"]), (cells, row)
            assert agrees(numbers(cells["mean [95 %] ms"])[0], row["mean_ms"])
            check_interval(cells["mean [95 %] ms"].replace("–", " "), *_interval(row))


OVER_CLUSTERS = "median ms [95 %]"


@pytest.mark.parametrize("page", ["endpoint-latency", "bob"])
def test_latencies_over_clusters(page: str) -> None:
    found = [each for each in tables(RESULTS / page / "README.md") if OVER_CLUSTERS in each]
    matrices = sorted((RESULTS / page).glob("clusters-*/points.json"))
    assert len(found) == len(matrices)
    for table, matrix in zip(found, matrices, strict=True):
        runs = [raw.latencies(directory) for _, directory in raw.points(matrix.parent)]
        every = pd.concat(runs).groupby(["system", "endpoint", "placement"])
        assert len(table) == len(every)
        for _, cells in table.iterrows():
            endpoint, _, placement = cells["endpoint"].partition(", ")
            placement = cells.get("placement") or placement or "unknown"
            of = every.get_group((system_of(cells["system"]), endpoint, placement))
            assert cells["clusters"] == str(len(of)) and cells["n"] == str(of["n"].sum())
            for column, name in ((OVER_CLUSTERS, "median_ms"), ("mean ms [95 %]", "mean_ms")):
                assert agrees(numbers(cells[column])[0], of[name].mean(), 2e-3), cells
                ends = stats.t.interval(0.95, len(of) - 1, of[name].mean(), stats.sem(of[name]))
                check_interval(cells[column], *ends)


def _interval(row: Mapping[str, Any]) -> tuple[float, float]:
    return row["mean_ms_low"], row["mean_ms_high"]


def test_sentences_on_single_requests() -> None:
    if (RESULTS / "endpoint-latency" / "README.md.j2").exists():
        pytest.skip("the page is made from its bundles")
    page = " ".join((RESULTS / "endpoint-latency" / "README.md").read_text("utf-8").split())
    found = []
    for network in NETWORKS:
        rows = raw.latencies(RESULTS / "endpoint-latency" / network)
        garage = rows[rows["system"] == "garage"].set_index("endpoint")["ms"]
        put = only(rows, system="minio", endpoint="PutObject")["ms"]
        limits = {"GetObject": 125, "PutObject": 230, "RemoveObject": 230}
        found.append([(garage[endpoint] > ms).sum() for endpoint, ms in limits.items()])
        found.append([np.median(put[put < 700]), np.median(put[put >= 850])])
        found[-1] = [(put < 700).sum(), *(round(each) for each in found[-1])]
    (five, two, three, other) = found
    for sentence in (
        f"On five sites {five[0]} of 100 GetObject took more than 125 ms, {five[1]} PutObject and "
        f"{five[2]} RemoveObject more than 230 ms; on three datacenters {three[0]}, {three[1]} "
        f"and {three[2]}.",
        f"On five sites {two[0]} of 100 took about {two[1]} ms",
        f"on three datacenters {other[0]} took about {other[1]} ms",
    ):
        assert sentence in page, sentence


def test_sentences_on_small_writes_and_large_reads() -> None:
    page = (RESULTS / "object-sizes" / "README.md").read_text("utf-8")
    rows = raw.sizes(RESULTS / "object-sizes" / "study")
    is_small = rows["object_bytes"].le(51_200) & rows["system"].str.startswith("minio")
    small = rows[is_small & (rows["operation"] == "write") & (rows["nodes"] > 1)]
    slow = [100 * (ms > 3 * np.median(ms)).mean() for ms in small["ms"]]
    assert f"take {small['mean_ms'].min():.0f} to {small['mean_ms'].max():.0f} ms" in page
    assert f"{min(slow):.0f} to {max(slow):.0f} % of them wait, up to" in page
    assert f"up to {small['max_ms'].max():.0f} ms" in page
    bob, minio = (
        only(rows, system=system, operation="write", nodes=2, object_bytes=1024)
        for system in ("bob", "minio")
    )
    times = [minio[name] / bob[name] for name in ("mean_ms", "median_ms")]
    assert f"is {times[0]:.0f} times Bob's for that reason; the median {times[1]:.1f} times" in page
    idle: dict[str, list[float]] = {}
    for values, directory in raw.points(RESULTS / "object-sizes" / "study"):
        idle.setdefault(values["system"], []).append(raw.memory(directory)["idle"] / 2**20)
    for name in ("Bob", "MinIO", "Garage"):
        low, high = (each(idle[SYSTEMS[name]]) for each in (np.nanmin, np.nanmax))
        assert re.search(rf"{name} (takes )?{low:.0f} to {high:.0f}", page), (name, low, high)


def test_what_bobs_keys_take() -> None:
    """Beside what was drawn at random, which no bundle has."""
    (table,) = with_columns(RESULTS / "bob" / "README.md", "measured, mean [95 %]")
    for _, cells in table.iterrows():
        network, endpoint, placement = re.split(r": |, | \(", cells[""])[:3]
        computed = raw.latencies(RESULTS / "bob" / network.replace(" ", "-"))
        row = only(computed, system="bob", endpoint=endpoint, placement=placement)
        assert agrees(numbers(cells["measured, mean [95 %]"])[0], row["mean_ms"]), cells
        check_interval(cells["measured, mean [95 %]"].replace("–", " "), *_interval(row))


def test_round_trips_that_were_counted_in_the_sources() -> None:
    (table,) = with_columns(RESULTS / "endpoint-latency" / "README.md", "why (read in the sources)")
    computed = raw.round_trips(RESULTS / "round-trips" / "five-sites")
    for _, cells in table.iterrows():
        for name in table.columns[1:3]:
            found = only(computed, system=system_of(name), endpoint=cells["endpoint"])["lines"]
            slopes = {round(line.slope) for line in found}
            assert {int(each) for each in numbers(cells[name])} <= slopes, (cells, slopes)


def test_the_same_a_day_later() -> None:
    page = RESULTS / "endpoint-latency" / "README.md"
    (table,) = with_columns(page, "five sites, 20 Nov")
    assert len(table) == 8
    columns = [(where, name) for name in NETWORKS for where in ("endpoint-latency", "bob")]
    for _, cells in table.iterrows():
        system, endpoint = cells["endpoint"].split(", ")
        for cell, (where, network) in zip(cells.tolist()[1:], columns, strict=True):
            computed = raw.latencies(RESULTS / where / network)
            row = only(computed, system=SYSTEMS[system], endpoint=endpoint)
            assert agrees(numbers(cell)[0], row["mean_ms"]), cells
            check_interval(cell, *_interval(row))


def check_round_trips(cell: str, row: Mapping[str, Any]) -> None:
    """Each number of a cell is the slope of a line, the first one of a line that most are on."""
    slopes = [line.slope for line in row["lines"]]
    shares = [line.share for line in row["lines"]]
    found = numbers(cell.replace("[", " [").partition(" by packets")[0])
    assert found, cell
    first = number(found[0])
    near = [k for k, slope in enumerate(slopes) if abs(slope - first) < 0.05 + 0.01 * first]
    # Which of two about equal lines comes first is a toss.
    assert any(shares[k] >= shares[0] - 0.2 for k in near), (cell, row["lines"])
    for other in cell.split(" or ")[1:]:
        assert any(abs(slope - number(numbers(other)[0])) < 0.08 for slope in slopes), (
            cell,
            slopes,
        )


def check_modes(cell: str, row: Mapping[str, Any]) -> None:
    """Shares add up, and the lines of a fifth of the requests or more are there."""
    if cell == "one":
        assert row["lines"][0].share > 0.95
        return
    assert abs(sum(int(share) for share in re.findall(r"(\d+) %", cell)) - 100) <= 2, cell
    for share, slope in re.findall(r"(\d+) %: ([\d.]+)", cell):
        if int(share) >= 18:
            near = [one.share for one in row["lines"] if abs(one.slope - float(slope)) < 0.1]
            assert any(abs(each - int(share) / 100) < 0.15 for each in near), (cell, row["lines"])


def check_path(cell: str, row: Mapping[str, Any]) -> None:
    """The most frequent counts of the packet record, those of a fifth of the requests or more."""
    frequent = [count for count, share in row["paths"] if share >= 0.2]
    assert [*map(number, numbers(cell))] == frequent, (cell, row["paths"])


def test_round_trips() -> None:
    page = RESULTS / "round-trips" / "README.md"
    for network, table in zip(NETWORKS, with_columns(page, "store", "intercept, ms"), strict=True):
        computed = raw.round_trips(RESULTS / "round-trips" / network)
        assert len(table) == len(computed)
        for _, cells in table.iterrows():
            endpoint, _, placement = cells["endpoint"].partition(", ")
            row = only(
                computed,
                system=SYSTEMS[cells["store"]],
                endpoint=endpoint,
                placement=placement or "unknown",
            )
            check_round_trips(cells["round trips [95 %]"], row)
            check_path(cells["critical path"].replace("≠", ""), row)
            assert number(cells["lower bound"]) == row["least"], cells
            check_modes(cells["modes, share: round trips"], row)
            intercept = number(cells["intercept, ms"])
            # A hundredth of a round trip is a millisecond at 100 ms.
            off = [abs(one.intercept_ms - intercept) - 0.7 * one.slope for one in row["lines"]]
            assert min(off) < 1, cells
            _, wan_bytes, (low, high), packets, ends = row["cost"]
            for cell, value, least, most in (
                (cells["WAN bytes"], wan_bytes, low, high),
                (cells["packets"], packets, *ends),
            ):
                assert agrees(numbers(cell)[0], most if "≤" in cell else value, 0.02), (cells, cell)
                assert ("≤" in cell) == (least <= 0), cells


def test_round_trips_of_2021() -> None:
    page = RESULTS / "round-trips" / "README.md"
    (table,) = with_columns(page, "MinIO 2021-11-24")
    where = ("round trips, five sites", "three datacenters")
    for column, network in zip(where, NETWORKS, strict=True):
        computed = raw.round_trips(RESULTS / "round-trips" / f"minio-2021-{network}")
        for _, cells in table.iterrows():
            row = only(computed, endpoint=cells["MinIO 2021-11-24"])
            check_round_trips(cells[column].partition(",")[0], row)


def test_the_index() -> None:
    (table,) = with_columns(RESULTS / "index" / "README.md", "measured on")
    measured = _clusters_of_operations()
    for _, cells in table.iterrows():
        endpoint, _, placement = cells["operation"].partition(", ")
        system, _, version = cells["system"].rpartition(" ")
        of = (
            endpoint,
            placement or "unknown",
            cells["topology"],
            SYSTEMS.get(system, system.lower()),
        )
        number_of = int((numbers(cells["measured on"]) or ["1"])[0])
        bundles = [
            [*clusters.values()]
            for key, clusters in measured.items()
            if key[:4] == of and version.replace("-", "") in key[4].replace("-", "")
        ]
        # Asked at the node that leads and at another one they are two rows.
        found = [
            rows for each in bundles for rows in (*each, [one for part in each for one in part])
        ]
        found = [rows for rows in found if len(rows) == number_of]
        assert any(_is_in_the_index(cells, rows) for rows in found), (cells.tolist(), found)


def _clusters_of_operations() -> dict[tuple[str, ...], dict[Path, list[Mapping[str, Any]]]]:
    """Of each operation and version on a topology the clusters, by bundle."""
    every: dict[tuple[str, ...], dict[Path, list[Mapping[str, Any]]]] = {}
    for bundle in raw.bundles():
        if raw.study_of(bundle) == "round-trips":
            for _, directory in raw.clusters(bundle):
                topology = raw.document(directory / "manifest.json")["topology"]["name"]
                for _, row in raw.round_trips(directory).iterrows():
                    key = (*row[["endpoint", "placement"]], topology, *row[["system", "version"]])
                    every.setdefault(key, {}).setdefault(bundle, []).append(dict(row))
    return every


def _is_in_the_index(cells: Mapping[str, str], rows: list[Mapping[str, Any]]) -> bool:
    medians = [row["median_at_100"] for row in rows]
    cell = cells["median at 100 ms RTT, ms"]
    if " – " in cell:  # from the least to the greatest of many clusters
        medians = [min(medians), max(medians)]
    printed = re.split("; | – ", cell)
    if len(printed) != len(medians) or not all(map(agrees, printed, medians)):
        return False
    if cells["lower bound"] not in {f"{row['least']:g}" for row in rows}:
        return False
    if len(rows) == 1:
        check_round_trips(cells["round trips [95 %]"], rows[0])
        check_path(cells["critical path"].replace("≠", ""), rows[0])
    elif " – " in cell:
        mean = np.mean([raw.mean_slope(row["lines"]) for row in rows])
        first = number(numbers(cells["round trips [95 %]"])[0])
        return " or " in cells["round trips [95 %]"] or abs(mean - first) < 0.08
    return True


def test_drills_of_the_index() -> None:
    (table,) = with_columns(RESULTS / "index" / "README.md", "drill", "topology")
    runs: dict[tuple[str, str], list[Any]] = {}
    for bundle in raw.bundles():
        if raw.document(bundle / "manifest.json")["kind"] == "drill":
            found = raw.drill(bundle)
            runs.setdefault((found["name"], found["system"]), []).append(found)
    cells_of = [
        (cells["drill"], str(header).rpartition(" ")[0], cell)
        for _, cells in table.iterrows()
        for header, cell in list(cells.items())[2:]
        if cell != "not run"
    ]
    assert len(cells_of) == len(runs)
    for drill, system, cell in cells_of:
        found = runs[drill, SYSTEMS.get(system, system.lower())]
        if len(found) > 1:
            assert f" of {len(found)} runs" in cell, (drill, cell)
        assert any(map(partial(_is_said_of, cell), found)), (drill, cell)


def _is_said_of(cell: str, run: Mapping[str, Any]) -> bool:
    durability = run["durability"]
    kinds = ("lost", "corrupt", "stale", "resurrected", "unexpected", "unread")
    said = [f"{durability[kind]} {kind}" for kind in kinds if durability[kind]] or ["none lost"]
    back = re.search(r"back in ([^;]*)", cell)
    times = numbers(back.group(1)) if back else []
    is_back = any(agrees(each, run["recovery_s"] or 0, 2e-3) for each in times)
    is_told = is_back or not times or run["recovery_s"] is None
    return cell.startswith(f"{durability['verdict']}: {', '.join(said)}") and is_told


def test_claims_of_drills() -> None:
    """What was ok of what was sent, of claims about a whole phase."""
    (table,) = with_columns(RESULTS / "drills" / "README.md", "drill", "claim", "bound")
    drill, checked = "", 0
    for _, cells in table.iterrows():
        drill = cells["drill"] or drill
        client = _client(cells["claim"])
        is_part = "s to " in cells["claim"]  # of a phase: its counts are not stored
        what = next((each for each in ("reads", "writes") if each in cells["claim"]), "writes")
        for name in ("Garage", "MinIO", "Bob"):
            cell = cells[name]
            found = raw.drill(RESULTS / "drills" / SYSTEMS[name] / drill)
            if "resurrected" in cell:
                assert number(numbers(cell)[0]) == found["durability"]["resurrected"], cells
                checked += 1
            if "/" not in cell or is_part:
                continue
            if "both sides read" in cells["claim"]:
                what = "reads"
            clients = {each["client"]: each for each in found["clients"]}
            during = clients[client][what]["phases"]["during"]
            sent = during["attempted"] - during["not_sent"]
            assert cell.partition(", ")[2].split(" ")[0] == f"{during['ok']}/{sent}", (cells, name)
            if "never" in cell:
                assert f"({during['not_sent']} never sent)" in cell, (cells, name)
            said = [each for each in found["claims"] if each["claim"] in cells["claim"]]
            bounds = {each.get("availability", {}).get(key) for each in said for key in ENDS}
            assert f"{numbers(cells['bound'])[0]}%" in bounds, (cells, bounds)
            verdict = _verdict(cells["bound"], during["ok"], sent)
            assert cell.replace("*", "").startswith(verdict), (cells, name)
            checked += 1
    assert checked > 100


def test_the_other_living_clients() -> None:
    (table,) = with_columns(RESULTS / "drills" / "README.md", "client", "reads", "writes")
    for _, cells in table.iterrows():
        drill, system = cells["drill"].split(", ")
        clients = raw.drill(RESULTS / "drills" / SYSTEMS[system] / drill)["clients"]
        (client,) = [each for each in clients if each["client"] == cells["client"]]
        for what in ("reads", "writes"):
            during = client[what]["phases"]["during"]
            printed = [*map(number, numbers(cells[what]))]
            sent = during["attempted"] - during["not_sent"]
            assert printed[:2] == [during["ok"], sent], cells
            assert [*printed[2:], 0][0] == during["not_sent"], cells


ENDS = ("at_least", "at_most")


def _client(claim: str) -> str:
    words = claim.replace("(", " (").split(", at ")
    return words[-1].split(" ")[0] if len(words) > 1 else "survivor"


def _verdict(bound: str, ok: int, sent: int) -> str:
    """By Wilson's interval of what was sent, from ten on."""
    share = number(numbers(bound)[0]) / 100
    if sent < 10:
        return "not decided"
    interval = stats.binomtest(ok, sent).proportion_ci(method="wilson")
    low, high = (
        (interval.low, interval.high) if "≥" in bound else (1 - interval.high, 1 - interval.low)
    )
    least = share if "≥" in bound else 1 - share
    return "holds" if low >= least else "does not hold" if high < least else "not decided"


@pytest.mark.parametrize("operation", ["read", "write"])
def test_object_sizes(operation: str) -> None:
    page = RESULTS / "object-sizes" / "README.md"
    (table,) = with_columns(page, f"{operation}, mean ms")
    computed = raw.sizes(RESULTS / "object-sizes" / "study")
    assert len(table) == 16
    for _, cells in table.iterrows():
        name, _, placement = cells[f"{operation}, mean ms"].partition(", ")
        for header, cell in list(cells.items())[2:]:
            size, unit = str(header).split(" ")
            row = only(
                computed,
                system=SYSTEMS[name],
                placement=placement or "unknown",
                operation=operation,
                nodes=int(cells["nodes"]),
                object_bytes=int(size) * raw.UNITS[unit],
            )
            assert agrees(cell, row["mean_ms"]), (cells, header, row["mean_ms"])


def test_one_key_again_and_again() -> None:
    (table,) = with_columns(RESULTS / "object-sizes" / "README.md", "one key, mean ms [95 %]")
    computed = raw.sizes(RESULTS / "object-sizes" / "one-key")
    assert len(table) == 18
    for _, cells in table.iterrows():
        size, unit = cells["size"].split(" ")
        for column, keys in (
            ("fresh keys, mean ms [95 %]", "fresh"),
            ("one key, mean ms [95 %]", "one"),
        ):
            row = only(
                computed,
                system=SYSTEMS[cells["system"]],
                operation=cells["operation"],
                object_bytes=int(size) * raw.UNITS[unit],
                keys=keys,
            )
            assert agrees(numbers(cells[column])[0], row["mean_ms"]), cells
            check_interval(cells[column], *_interval(row))


def test_mixed_load() -> None:
    page = RESULTS / "mixed-load" / "README.md"
    (operations,) = with_columns(page, "operation", "ops/s [95 %]")
    (probe,) = with_columns(page, "times [95 %]")
    made = (RESULTS / "mixed-load" / "study" / "tables.md").read_text("utf-8").splitlines()
    for row in [*operations.to_numpy(), *probe.to_numpy()]:  # intervals, of one draw
        assert any(all(f"| {cell} |" in line for cell in row) for line in made), row
    for values, directory in raw.points(RESULTS / "mixed-load" / "study"):
        loaded = raw.load(directory)
        mine = _deployment(operations, values)
        assert len(mine) == 2
        for _, cells in mine.iterrows():
            row = only(loaded, operation=cells["operation"])
            assert abs(number(cells["ok"]) - row["ok"]) <= 1 and cells["failed"] == str(
                row["failed"]
            )
            assert agrees(numbers(cells["ops/s [95 %]"])[0], row["operations_per_s"], 1e-3), cells
            assert agrees(cells["MB/s"], row["mb_per_s"], 1e-3)
            assert agrees(numbers(cells["mean ms [95 %]"])[0], row["mean_ms"], 1e-3)
            assert agrees(numbers(cells["p99 ms [95 %]"])[0], row["p99_ms"], 1e-3)
        sent = pd.read_parquet(directory / "samples.parquet")
        sent = sent[sent["outcome"] == "ok"]
        for _, cells in _deployment(probe, values).iterrows():
            of = sent[sent["endpoint"] == cells["endpoint"]]
            idle, busy = (
                of.loc[of["phase"] == phase, "total_ns"] / 1e6 for phase in ("idle", "loaded")
            )
            assert agrees(cells["idle median ms"], idle.median(), 1e-3), cells
            assert agrees(cells["loaded median ms"], busy.median(), 0.02), cells
            assert agrees(numbers(cells["times [95 %]"])[0], busy.median() / idle.median(), 0.02)


def _deployment(table: pd.DataFrame, values: Mapping[str, Any]) -> pd.DataFrame:
    is_it = table["system"].map(SYSTEMS.get) == values["system"]
    is_it &= table["nodes"] == str(values["nodes"])
    return table[is_it & (table["drives"] == str(values.get("drives", "–")))]


def test_disk_space() -> None:
    page = RESULTS / "disk-reclaim" / "README.md"
    (shares,) = with_columns(page, "full MiB")
    (per_byte,) = with_columns(page, "disk / stored")
    for _, cells in shares.iterrows():
        found = raw.reclaim(RESULTS / "disk-reclaim" / SYSTEMS[cells["system"]])
        assert agrees(cells["full MiB"], found["full_bytes"] / 2**20)
        columns = ("freed at once", "1 min", "5 min", "10 min")
        for column, after in zip(columns, found["after"].values(), strict=True):
            assert agrees(numbers(cells[column])[0], 100 * after), cells
        assert agrees(numbers(cells["12 min"])[0], 100 * found["freed_at_end"])
        if cells["90 % after"] != "–":
            assert agrees(numbers(cells["90 % after"])[0], found["freed_most_after_s"])
        if cells["in the trash at most"] != "–":
            assert agrees(numbers(cells["in the trash at most"])[0], 100 * found["trash_at_most"])
        stored = found["objects"] * found["object_bytes"]
        (row,) = per_byte[per_byte["system"] == cells["system"]]["disk / stored"]
        assert agrees(row, (found["full_bytes"] - found["empty_bytes"]) / stored)


def test_idle_nodes() -> None:
    (table,) = with_columns(RESULTS / "disk-reclaim" / "README.md", "idle memory, MiB")
    for _, cells in table.iterrows():
        nodes = raw.idle_nodes(RESULTS / "disk-reclaim" / SYSTEMS[cells["system"]])
        for column, name in (("idle memory, MiB", "idle"), ("idle CPU, % of a core", "cpu")):
            low, high = numbers(cells[column])
            assert agrees(low, nodes[name].min(), 0.06), (cells, nodes)
            assert agrees(high, nodes[name].max(), 0.06), (cells, nodes)
        assert agrees(
            cells["the most of any node while writing and removing"], nodes["most"].max(), 0.01
        )


@pytest.mark.parametrize(
    ("study", "value"), [("cluster-growth", "nodes"), ("bucket-growth", "objects")]
)
def test_at_scale(study: str, value: str) -> None:
    page = RESULTS / "at-scale" / "README.md"
    table = with_columns(page, "medians, ms", "adds, ms [95 %]")[study == "bucket-growth"]
    medians = {
        (values["system"], row["endpoint"], row["placement"], int(values[value])): row["median_ms"]
        for values, directory in raw.points(RESULTS / "at-scale" / study)
        for row in raw.latencies(directory).to_dict("records")
    }
    checked = 0
    for _, cells in table.iterrows():
        endpoint, _, placement = cells["endpoint"].partition(", ")
        for each in cells["medians, ms"].split("; "):
            at, printed = each.rstrip("*").split(": ")
            key = SYSTEMS[cells["system"]], endpoint, placement or "unknown", int(number(at))
            place = key if key in medians else (*key[:2], "local", key[3])
            assert agrees(printed, medians[place]), (cells, each)
            checked += 1
    made = (RESULTS / "at-scale" / study / "tables.md").read_text("utf-8")
    rows = [[str(cell) for cell in cells] for cells in table.to_numpy()]
    assert [row for row in rows if f"| {' | '.join(row)} |" not in made] == []
    assert checked == (72 if study == "cluster-growth" else 66), checked


def test_what_filling_a_bucket_takes() -> None:
    (table,) = with_columns(RESULTS / "at-scale" / "README.md", "objects/s")
    found = {
        (values["system"], values["objects"]): directory
        for values, directory in raw.points(RESULTS / "at-scale" / "bucket-growth")
    }
    for _, cells in table.iterrows():
        few, many = (found[SYSTEMS[cells[""]], n] for n in (100, 100_000))
        (filled,) = raw.document(many / "prefill.json")["systems"]
        assert agrees(cells["objects/s"], filled["per_s"])
        used = [raw.memory(each) for each in (few, many)]
        stored = used[1]["space_bytes"] / (100_000 * 1024)
        assert agrees(cells["disk of all nodes for a byte stored"], stored, 0.02), cells
        printed = numbers(cells["memory of a node, at 100 objects and at 100,000"])
        for text, each in zip(printed, used, strict=True):
            assert agrees(text, each["loaded"] / 2**20, 0.01), cells


def test_a_wrong_number_is_noticed() -> None:
    assert agrees("1,189", 1189.4) and agrees("−2.1", -2.13) and agrees("0.34", 0.3449)
    assert not agrees("0.35", 0.3421) and not agrees("1,190", 1188.4)
    rng = np.random.default_rng(1)
    x = np.repeat([25.0, 50.0, 100.0, 200.0], 40)
    y = x * np.where(rng.random(160) < 0.7, 1, 3) + rng.uniform(0, 2, 160)
    found = raw.lines(x, y)
    assert [round(line.slope) for line in found] == [1, 3]
    assert [line.share for line in found] == pytest.approx([0.7, 0.3], abs=0.1)
    row = {"lines": found, "paths": [[1.0, 0.7], [3.0, 0.3]]}
    check_round_trips("**1.00** [0.99, 1.01] or 3.00", row)
    check_path("1 or 3", row)
    for cell in ("**2.00** [1.99, 2.01]", "**1.00** [0.99, 1.01] or 2.00"):
        with pytest.raises(AssertionError):
            check_round_trips(cell, row)
