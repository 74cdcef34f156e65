"""Every verdict on a publication, computed again from the data and the claims' YAML alone."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from tests.second_person import raw
from tests.second_person.pages import number, numbers, tables

PAGE = raw.RESULTS / "publications" / "README.md"
FILES = sorted((raw.RESULTS.parents[1] / "experiments/claims/publications").glob("*.yaml"))
HOLDS, DOES_NOT, OPEN = "holds", "does not hold", "not decided"
NAMED = {"garage", "minio", "minio-nginx", "bob", "nginx", "apache"}
BOUNDS = ("at_least", "at_most", "within", "outside")
BRINK = (0.004, 0.4)
"""p between these may be on either side of 0.05 with other random numbers, or another method."""
Row = Mapping[str, Any]


def publication(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text("utf-8")))


@cache
def rows(path: str, studies: tuple[str, ...]) -> pd.DataFrame:
    """The rows that a claim is about, of all bundles of these studies, from raw data."""
    frames = [_published()] if path == "published" else []
    for bundle in raw.bundles() if studies else ():
        systems = {each["name"] for each in raw.document(bundle / "manifest.json")["systems"]}
        is_named = systems & NAMED or raw.study_of(bundle) == "envelope"
        if raw.study_of(bundle) not in studies or not is_named:
            continue
        frame = _rows_of(path, bundle)
        name = os.path.relpath(bundle, PAGE.parent)
        frame["bundle"], frame["study"] = name, raw.study_of(bundle)
        frame["place"] = "/".join(bundle.parts[-2:])
        if "topology" in frame and len(frame):
            frame["run"] = name.replace(frame["topology"].iloc[0], "*")
        frames.append(frame)
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _rows_of(path: str, bundle: Path) -> pd.DataFrame:
    functions: dict[str, Callable[[Path], pd.DataFrame]] = {
        "endpoints": raw.latencies,
        "round_trips": _slopes,
        "load.systems": _write_over_read,
        "load.systems.operations": raw.load,
        "resources.points": _resources,
        "reclaim.systems": lambda directory: pd.DataFrame([raw.reclaim(directory)]),
    }
    of_bundles: dict[str, Callable[[Path], pd.DataFrame]] = {
        "sizes.entries": raw.sizes,
        "drill": lambda bundle: pd.DataFrame([raw.drill(bundle)]),
        "drill.clients": _clients,
        "envelope.limits": raw.limits,
        "advice.choices": raw.choices,
        "advice.choices.limits": _limits_of_choices,
    }
    if path in of_bundles:
        return of_bundles[path](bundle)
    if path == "resources.points" and not (bundle / "points.json").exists():
        return pd.DataFrame()
    return raw.of_clusters(functions[path], bundle)


def _limits_of_choices(bundle: Path) -> pd.DataFrame:
    found = raw.limits(bundle)
    return found if len(raw.choices(bundle)) else found.iloc[:0]


def _clients(bundle: Path) -> pd.DataFrame:
    found = raw.drill(bundle)
    return pd.DataFrame([{"system": found["system"], **each} for each in found["clients"]])


def _published() -> pd.DataFrame:
    """All published tables, the stored estimates one below the other: means, then medians."""
    frames = []
    for path in sorted(raw.PUBLISHED.glob("*.csv")):
        table = pd.read_csv(path)
        if "median_us" in table:
            parts = [_of_statistic(table, statistic) for statistic in ("mean", "median")]
            table = pd.concat(parts, ignore_index=True)
        keys = [name for name in KEYS if name in table]
        times = table.groupby(keys).size().rename("times_printed").reset_index()
        frames.append(table.merge(times, on=keys).assign(table=path.stem))
    return pd.concat(frames, ignore_index=True)


KEYS = ["topology", "endpoint", "deployment", "server"]
KEYS += ["system", "nodes", "operation", "object_bytes", "statistic"]


def _of_statistic(table: pd.DataFrame, statistic: str) -> pd.DataFrame:
    names = {f"{statistic}_us": "time_us"}
    names |= {f"{statistic}_ci95_{end}_us": f"ci95_{end}" for end in ("low", "high")}
    kept = [name for name in KEYS if name in table]
    return table[[*kept, *names]].rename(columns=names).assign(statistic=statistic)


def _slopes(bundle: Path) -> pd.DataFrame:
    """The first line's slope and the mean over lines, to a twentieth of a round trip, or of it."""
    found = raw.round_trips(bundle)
    found = found[[bool(each) and each[0].share > 0.25 for each in found["lines"]]].copy()
    first = np.array([each[0].slope for each in found["lines"]])
    mean = [raw.mean_slope(each) for each in found["lines"]]
    for figure, interval, values, half in (
        ("round_trips", "ci95", first, 0.05),
        ("mean_round_trips", "mean_ci95", np.array(mean), 0.05 * np.array(mean)),
    ):
        found[figure] = values
        found[f"{interval}_low"], found[f"{interval}_high"] = values - half, values + half
    return found


def _write_over_read(directory: Path) -> pd.DataFrame:
    found = raw.load(directory)
    means = dict(zip(found["operation"], found["mean_ms"], strict=True))
    over = means["PutObject"] / means["GetObject"]
    return pd.DataFrame([{"system": found["system"][0], "write_over_read": over}])


def _resources(directory: Path) -> pd.DataFrame:
    used = raw.memory(directory)
    row: dict[str, Any] = {"node_rss_bytes": used, "space_bytes": used["space_bytes"]}
    if (directory / "load.parquet").exists():
        row["per_request"] = {"cpu_ms": raw.cpu_ms(directory)}
        row["busiest_node_over_mean"] = raw.busiest_over_mean(directory)
    return pd.DataFrame([row])


def _due(found: Row) -> int:
    """Of requests of a drill: what was due, but for what this machine could not send."""
    return int(found["attempted"] - (found["not_sent"] if "expired" in found else 0))


def value_of(row: Row, claim: Row) -> tuple[float, float, float] | None:
    """A row's figure with its interval: NaN where there is none."""
    found: Any = row.get(claim["figure"], row)
    if found is row:
        for part in claim["figure"].split("."):
            found = found.get(part) if isinstance(found, dict | pd.Series) else None
    if isinstance(found, dict):
        due = _due(found)
        if not due:
            return None
        share = stats.binomtest(found["ok"], due).proportion_ci(method="wilson")
        ends = (share.low, share.high) if due >= 10 else (math.nan, math.nan)
        return found["ok"] / due, *ends
    if found is None or pd.isna(found):
        return None
    column = claim.get("interval", claim["figure"])
    low, high = (row.get(f"{column}_{end}", math.nan) for end in ("low", "high"))
    by = float(row[claim["times"]]) if "times" in claim else 1.0
    by /= float(row[claim["per"]]) if "per" in claim else 1.0
    value = float(found) * by
    return (value, value, value) if claim.get("exact") else (value, low * by, high * by)


def counts(row: Row, claim: Row) -> tuple[int, ...]:
    """How many requests a row's figure rests on."""
    found: Any = row
    for part in claim["figure"].split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if isinstance(found, dict):
        return (_due(found),)
    is_known = not claim.get("exact") and not pd.isna(row.get("ok", math.nan))
    return (int(row["ok"]),) if is_known else ()


def matches(row: Row, conditions: Row) -> bool:
    """Whether a row meets conditions: values, `any`, and ranges without `largest_below`."""
    for name, wanted in conditions.items():
        value = row.get(name)
        if isinstance(wanted, dict):
            if not all(
                value >= size(bound) if key == "at_least" else value <= size(bound)
                for key, bound in wanted.items()
                if key != "largest_below"
            ):
                return False
            if "largest_below" in wanted and value >= size(wanted["largest_below"]):
                return False
        elif wanted != "any" and value != wanted and value != size(wanted):
            return False
    return True


def size(value: Any) -> Any:
    """ "4MiB" in bytes; anything else as it is."""
    for unit, number_of in raw.UNITS.items():
        if isinstance(value, str) and value.endswith(unit) and value[: -len(unit)].isdigit():
            return int(value[: -len(unit)]) * number_of
    return value


def compared(claim: Row, conditions: Row) -> list[tuple[float, float, float, int]]:
    """Every comparison of a claim: value, interval, and of how many clusters it is."""
    study = claim.get("study", [])
    studies = (study,) if isinstance(study, str) else tuple(study)
    frame = rows(claim["rows"], studies)
    every = [{str(name): each for name, each in row.items()} for _, row in frame.iterrows()]
    same = [*claim.get("same", []), "replicate"]
    names = [name for name in same if name not in ("replicate", *claim.get("clusters", []))]
    names += [name for name, each in conditions.items() if isinstance(each, dict) or each == "any"]
    found: dict[str, list[Any]] = {}
    for row in [each for each in every if matches(each, conditions)]:
        own = value_of(row, claim)
        if own is None:
            continue
        key = repr([row.get(name) for name in names])
        if "over" not in claim:
            found.setdefault(key, []).append((*own, counts(row, claim), *_clusters_of(row)))
            continue
        bases = [each for each in every if matches(each, claim["over"]) and each is not row]
        bases = [each for each in bases if all(_equal(each.get(n), row.get(n)) for n in same)]
        for name, wanted in claim["over"].items():
            if isinstance(wanted, dict) and bases:
                largest = max(each[name] for each in bases)
                bases = [each for each in bases if each[name] == largest]
        for base in bases:
            below = value_of(base, claim)
            if below is None or min(own[0], below[0]) <= 0:
                continue
            apart = [base.get(name) for name, each in claim["over"].items() if each == "any"]
            n = counts(row, claim) + counts(base, claim)
            replicate, several = _clusters_of(row)
            several = min(several, _clusters_of(base)[1])
            one = (*_ratio(own, below), n, replicate, several)
            found.setdefault(f"{key} {apart}", []).append(one)
    return [one for group in found.values() for one in _of_clusters(group, claim)]


def _clusters_of(row: Row) -> tuple[Any, int]:
    """Which cluster a row is of, or of how many."""
    several = row.get("clusters")
    return row.get("replicate"), 1 if several is None or pd.isna(several) else int(several)


def _equal(one: Any, other: Any) -> bool:
    return one == other or (pd.isna(one) and pd.isna(other))


def _ratio(own: Any, below: Any) -> tuple[float, float, float]:
    value = own[0] / below[0]
    logs = [[math.log(each / figure[0]) for each in figure[1:]] for figure in (own, below)]
    down, up = math.hypot(logs[0][0], logs[1][1]), math.hypot(logs[0][1], logs[1][0])
    return value, value * math.exp(-down), value * math.exp(up)


def _of_clusters(group: list[Any], claim: Row) -> Iterator[tuple[float, float, float, int]]:
    are_replicates = not any(pd.isna(each[4]) for each in group)
    if len(group) == 1 or not (claim.get("clusters") or are_replicates):
        yield from ((*each[:3], each[5], each[3]) for each in group)
        return
    values = [math.log(each[0]) if "over" in claim else each[0] for each in group]
    found = raw.over_clusters(values)
    value, low, high = map(math.exp, found[:3]) if "over" in claim else found[:3]
    sums = tuple(map(sum, zip(*(each[3] for each in group), strict=True)))
    yield value, low, high, len(group), sums


def p_of(value: float, low: float, high: float, claim: Row) -> tuple[bool, float]:
    """Whether a value lies where it must, and the probability of that by chance."""
    bounds = claim.get("within") or claim.get("outside")
    least, most = bounds or (claim.get("at_least", -math.inf), claim.get("at_most", math.inf))
    is_right = (least <= value <= most) is not ("outside" in claim)
    if math.isnan(low):
        return is_right, 1.0
    if value == low == high:
        return is_right, 0.0 if value not in (least, most) else 1.0
    scale = math.log if "over" in claim else float
    away = []
    for bound in (least, most):
        if math.isinf(bound) or ("over" in claim and bound <= 0):
            continue
        half = scale(value) - scale(low) if bound < value else scale(high) - scale(value)
        away.append(abs(scale(bound) - scale(value)) / half if half else math.inf)
    return is_right, float(2 * stats.norm.sf(1.96 * min(away)))


def expected(
    claims: Iterable[dict[str, Any]], **only: Any
) -> Iterator[tuple[dict[str, Any], list[Any], list[set[str]]]]:
    """Each row of a table of claims: the claim, its comparisons, and their possible verdicts.

    `only`: what the rows have besides.
    """
    parts = []
    for claim in claims:
        if "cannot_be_tested" in claim:
            parts.append((claim, [], []))
            continue
        where = claim.get("where", {}) | only
        lists = {name: each for name, each in where.items() if isinstance(each, list)}
        for values in product(*lists.values()):
            found = compared(claim, where | dict(zip(lists, values, strict=True)))
            parts.append((claim, found, [p_of(*each[:3], claim) for each in found]))
    ps = [
        p
        for _, found, judged in parts
        for each, (_, p) in zip(found, judged, strict=True)
        if not math.isnan(each[1])
    ]
    order = np.argsort(ps, kind="stable")
    corrected = np.empty(len(ps))
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, (len(ps) - rank) * ps[index])
        corrected[index] = min(1.0, running)
    left = iter(corrected)
    for claim, found, judged in parts:
        verdicts = []
        for each, (is_right, _) in zip(found, judged, strict=True):
            p = 1.0 if math.isnan(each[1]) else next(left)
            decided = HOLDS if is_right else DOES_NOT
            # Means over lines depend on how lines are found.
            both = BRINK[0] < p < BRINK[1] or claim["figure"] == "mean_round_trips"
            verdicts.append({decided, OPEN} if both else {decided} if p < 0.05 else {OPEN})
        yield claim, found, verdicts


def possible(claim: Row, verdicts: list[set[str]]) -> set[str]:
    """The verdicts that a claim may have, as those of its comparisons may be."""
    needed = {"all": len(verdicts), "most": len(verdicts) // 2 + 1, "some": 1}
    needed = needed[claim.get("holds_for", "all")]
    surely = [sum(each == {one} for each in verdicts) for one in (HOLDS, DOES_NOT)]
    maybe = [sum(one in each for each in verdicts) for one in (HOLDS, DOES_NOT)]
    found = {HOLDS} if maybe[0] >= needed else set()
    found |= {DOES_NOT} if maybe[1] > len(verdicts) - needed else set()
    is_sure = surely[0] >= needed or surely[1] > len(verdicts) - needed
    return found if is_sure else found | {OPEN}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_verdicts(path: Path) -> None:
    titles = [publication(each)["title"] for each in FILES]
    table = tables(PAGE)[titles.index(publication(path)["title"])]
    rows_of = [*expected(publication(path)["claims"])]
    assert len(table) == len(rows_of)
    for (_, cells), (claim, found, verdicts) in zip(table.iterrows(), rows_of, strict=True):
        assert cells["claim"] == claim["claim"].replace("|", "\\|")
        if "cannot_be_tested" in claim:
            assert cells["verdict"] == "cannot be tested here"
            assert cells["decided by"] == claim["cannot_be_tested"]
            continue
        if not found:
            assert cells["verdict"] == "not measured", cells
            continue
        bounds = [claim[key] for key in BOUNDS if key in claim]
        bounds = [f"{each:g}" for each in (bounds[0] if isinstance(bounds[0], list) else bounds)]
        assert numbers(cells["bound"])[-len(bounds) :] == bounds, (cells.tolist(), bounds)
        assert cells["verdict"] in possible(claim, verdicts), (cells.tolist(), found, verdicts)
        check_held(cells["hold"], verdicts)
        printed = number(numbers(cells["decided by"])[0])
        near = [
            each for each in found if math.isclose(each[0], printed, rel_tol=0.03, abs_tol=0.02)
        ]
        assert near, (cells.tolist(), found)
        interval = re.search(r"\[(\S+), (\S+)\]", cells["decided by"])
        if interval and "round_trips" not in claim["figure"]:  # those are known to a twentieth
            low, high = map(number, interval.groups())
            assert any(
                max(abs(each[1] - low), abs(each[2] - high)) < 0.3 * (high - low) + 0.006 * high
                for each in near
            ), (cells.tolist(), near)
        printed_n = re.search(r", n ([\d/ ]+)", cells["decided by"])
        n = printed_n and tuple(map(int, printed_n.group(1).split(" / ")))
        is_near = [
            all(abs(one - other) <= 2 for one, other in zip(n or (), each[4], strict=True))
            for each in near
            if len(n or ()) == len(each[4])
        ]
        assert any(is_near), (cells.tolist(), near)
        clusters = {"one" if each[3] == 1 else str(each[3]) for each in near if "study" in claim}
        assert cells["clusters"] in (clusters or {"–"}), (cells.tolist(), near)


def check_held(cell: str, verdicts: list[set[str]]) -> None:
    """How many comparisons hold, of how many."""
    held, of = map(int, cell.split(" of "))
    assert of == len(verdicts), (cell, len(verdicts))
    least = sum(each == {HOLDS} for each in verdicts)
    assert least <= held <= sum(HOLDS in each for each in verdicts), (cell, verdicts)


def test_conclusions_under_the_published_conditions() -> None:
    bundle = raw.RESULTS / "object-sizes" / "published-conditions"
    claims = [
        {key: each for key, each in claim.items() if each}
        for claim in raw.document(bundle / "manifest.json")["claims"]
    ]
    claims = [claim for claim in claims if "place" not in claim.get("where", {})]
    known = {
        claim["claim"]: (claim, verdicts)
        for claim, found, verdicts in expected(claims, bundle=os.path.relpath(bundle, PAGE.parent))
        if found
    }
    (table,) = [each for each in tables(bundle.parent / "README.md") if "conclusion" in each][:1]
    assert len(table) == 5
    for _, cells in table.iterrows():
        claim, verdicts = known[cells["conclusion"]]
        assert cells["verdict"] in possible(claim, verdicts), (cells.tolist(), verdicts)
        check_held(cells["comparisons that hold"], verdicts)


def test_the_page_counts_its_verdicts() -> None:
    verdicts = pd.concat(tables(PAGE))["verdict"].replace("not measured", OPEN)
    text = PAGE.read_text("utf-8")
    counts = [f"{n} {verdict}" for verdict, n in verdicts.value_counts().items()]
    assert f"**{len(verdicts)} verdicts: " in text and all(each in text for each in counts)
