"""What the stored bundles say, computed from their Parquet and JSON with pandas and scipy alone.

Nothing of the project's analysis is imported here or beside: these are the sums of a second person,
who read docs/reference and no code.
"""

from __future__ import annotations

import gzip
import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

RESULTS = Path(__file__).parents[2] / "docs" / "results"
PUBLISHED = RESULTS.parents[1] / "analysis" / "published"
OPERATIONS = {"Get": "read", "GetObject": "read", "Put": "write", "PutObject": "write"}
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20}
APART_MS = 40
KEYS = ["system", "version", "endpoint", "placement"]


@cache
def document(path: Path) -> Any:
    """A JSON file, of a bundle that may be a point whose matrix has those of all points in one."""
    if path.exists():
        return json.loads(path.read_text("utf-8"))
    if (zipped := path.with_name(f"{path.name}.gz")).exists():
        return json.loads(gzip.decompress(zipped.read_bytes()))
    return json.loads(_documents(path.parents[2])[path.parent.name, path.name])


@cache
def _documents(matrix: Path) -> dict[tuple[str, str], str]:
    rows = pd.read_parquet(matrix / "documents.parquet")
    return {
        (row.point, row.name_): row.text
        for row in rows.rename(columns={"name": "name_"}).itertuples()
    }


@cache
def bundles() -> tuple[Path, ...]:
    """The directories of all bundles: of a matrix that of the whole, of many drills each one."""
    every = [path.parent for path in RESULTS.glob("**/manifest.json")]
    for whole in (path.parent for path in RESULTS.glob("**/documents.parquet")):
        every += {whole / "points" / point for point, _ in _documents(whole)}
    kinds = {each: document(each / "manifest.json")["kind"] for each in every}
    matrices = {path for path, kind in kinds.items() if kind == "matrix"}
    found = {path for path in kinds if kinds[path] != "drills" and not matrices & set(path.parents)}
    return tuple(sorted(found))


def study_of(bundle: Path) -> str:
    """What was run: the name of the study or of the drill."""
    manifest = document(bundle / "manifest.json")
    return str((manifest.get("study") or manifest["drill"])["name"])


def table(directory: Path, name: str) -> pd.DataFrame:
    """A table of a bundle, which may be a point whose matrix has one of all points."""
    own = directory / f"{name}.parquet"
    if own.exists():
        return pd.read_parquet(own)
    return in_ns(packed(directory.parents[1], name)[directory.name].copy())


def in_ns(frame: pd.DataFrame) -> pd.DataFrame:
    """With what is given in units of 0.1 ms in nanoseconds as well."""
    for name in [name for name in frame.columns if name.endswith("_100us")]:
        frame[name.replace("_100us", "_ns")] = frame[name] * 100_000
    return frame


@cache
def sent(directory: Path) -> pd.DataFrame:
    """The measured requests, whatever came of them; latency in ms."""
    found = table(directory, "samples")
    found = found[found["phase"] == "measure"].copy()
    found["ms"] = found["total_ns"].astype(float) / 1e6
    if "placement" not in found:
        found["placement"] = "unknown"
    return found


@cache
def samples(directory: Path) -> pd.DataFrame:
    """Those that succeeded on a network that was as requested."""
    found = sent(directory)
    found = found[found["outcome"] == "ok"]
    if "late" in found:  # the network was, and they were resampled
        found = found[~found["late"].eq(True)]
    return found.copy()


@cache
def mean_interval(values: tuple[float, ...], statistic: str = "mean") -> tuple[float, float]:
    """A bootstrap interval of the mean, or of mean / median, of one sample."""
    data = (np.array(values),)
    of_both = lambda x, axis: np.mean(x, axis=axis) / np.median(x, axis=axis)  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = stats.bootstrap(
            data,
            np.mean if statistic == "mean" else of_both,
            n_resamples=999,
            method="BCa" if statistic == "mean" else "percentile",
            rng=np.random.default_rng(1),
        ).confidence_interval
    return float(found.low), float(found.high)


class Mean(NamedTuple):
    """A figure of a store: the mean of its clusters with Student's interval; of one, its own."""

    value: float
    low: float
    high: float
    clusters: int


def over_clusters(each: Iterable[float], low: float = np.nan, high: float = np.nan) -> Mean:
    """The mean of the figures of clusters; of one cluster with the ends of its own interval."""
    values = np.array([*each], dtype=float)
    if len(values) > 1:
        half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
        low, high = values.mean() - half, values.mean() + half
    return Mean(float(values.mean()), float(low), float(high), len(values))


def mean(rows: pd.DataFrame, figure: str, by: float = 1.0) -> Mean:
    """That of rows, one a cluster, in another unit."""
    assert "replicate" not in rows or rows["replicate"].nunique(dropna=False) == len(rows)
    ends = [rows.get(f"{figure}_{end}", pd.Series(np.nan)).iloc[0] for end in ("low", "high")]
    return over_clusters(rows[figure] * by, *(each * by for each in ends))


def ratio(above: pd.DataFrame, below: pd.DataFrame, figure: str) -> Mean:
    """Of clusters pair by pair: the mean of logarithms. Of one pair nothing is said of its ends."""
    one, other = (rows.sort_values("replicate")[figure].to_numpy() for rows in (above, below))
    found = over_clusters(np.log(one / other))
    return Mean(*np.exp(found[:3]), found.clusters)


def of_clusters(function: Callable[[Path], pd.DataFrame], bundle: Path) -> pd.DataFrame:
    """The rows of each cluster of a bundle, with its topology and what its matrix varies."""
    frames = []
    for values, directory in clusters(bundle):
        topology = document(directory / "manifest.json")["topology"]["name"]
        frames.append(function(directory).assign(**values | {"topology": topology}))
    return pd.concat(frames, ignore_index=True)


def latencies(directory: Path) -> pd.DataFrame:
    """A row for each endpoint and placement: n and the statistics of its latency."""
    rows = []
    for key, group in samples(directory).groupby(KEYS, sort=False):
        ms = group["ms"].to_numpy()
        low, high = mean_interval(tuple(ms))
        quartiles = np.percentile(ms, [25, 75])
        reach = 1.5 * (quartiles[1] - quartiles[0])
        far = (ms < quartiles[0] - reach) | (ms > quartiles[1] + reach)
        row = dict(zip(KEYS, key, strict=True)) | {"n": len(ms), "ok": len(ms)}
        row |= {"mean_ms": ms.mean(), "mean_ms_low": low, "mean_ms_high": high}
        row |= {"median_ms": np.median(ms), "min_ms": ms.min(), "max_ms": ms.max()}
        row |= {f"p{each}_ms": np.percentile(ms, each) for each in (95, 99)}
        rows.append(row | {"outliers.share": far.mean(), "ms": ms})
    return pd.DataFrame(rows)


def clusters(bundle: Path) -> Iterator[tuple[dict[str, Any], Path]]:
    """The runs of a bundle, each with its values: itself, or the points of a matrix."""
    if (bundle / "points.json").exists():
        yield from points(bundle)
    else:
        yield {"replicate": None}, bundle


def points(matrix: Path) -> Iterator[tuple[dict[str, Any], Path]]:
    """The points of a matrix, with their values."""
    for point in document(matrix / "points.json")["points"]:
        values = {name.rpartition(".")[2]: value for name, value in point["values"].items()}
        known = {"system": point["system"], "replicate": None, **point["values"], **values}
        yield known, matrix / point["directory"]


def sizes(matrix: Path) -> pd.DataFrame:
    """The latencies of reads and writes of a matrix over object sizes."""
    frames = []
    for values, directory in points(matrix):
        found = latencies(directory)
        found["operation"] = found["endpoint"].map(OPERATIONS)
        number, unit = values["object_size"][:-3], values["object_size"][-3:]
        study = document(directory / "manifest.json")["study"]
        same_key = values.get("key_mode", study["key_mode"]) == "same"
        found["nodes"], found["object_bytes"] = values["nodes"], int(number) * UNITS[unit]
        found["keys"], found["others"] = "one" if same_key else "fresh", ""
        found["replicate"] = values["replicate"]
        frames.append(found[found["operation"].notna()])
    found = pd.concat(frames, ignore_index=True)
    found["mean_over_median"] = found["mean_ms"] / found["median_ms"]
    both = [mean_interval(tuple(ms), "both") for ms in found["ms"]]
    found["mean_over_median_low"], found["mean_over_median_high"] = zip(*both, strict=True)
    return found


def load_of(directory: Path) -> pd.DataFrame:
    """The requests of a load."""
    return in_ns(pd.read_parquet(directory / "load.parquet"))


def _steady(directory: Path, system: str) -> tuple[float, float]:
    """The part of a load that the report found steady, s after the ramp; else all of it."""
    matrix = directory.parents[1] / "summary.json"
    is_there = matrix.exists() or matrix.with_name("summary.json.gz").exists()
    summary = document(matrix if is_there else directory / "summary.json")
    (of,) = (
        each
        for each in summary["load"]["systems"]
        if each["system"] == system and each.get("point", directory.name) == directory.name
    )
    steady = of["steady"]
    is_steady = steady["verdict"] == "steady"
    return (steady["begin_s"], steady["end_s"]) if is_steady else (0.0, of["duration_s"])


def load(directory: Path) -> pd.DataFrame:
    """Rates and latencies of each operation in the steady part of a load."""
    rows = []
    frame = load_of(directory)
    manifest = document(directory / "manifest.json")["load"]
    for system, requests in frame.groupby("system"):
        said = manifest[system]
        zero = said["began_ns"] + said["ramp_ms"] * 1e6
        begin, end = _steady(directory, str(system))
        seconds = end - begin
        ended_s = (requests["start_ns"] + requests["elapsed_ns"] - zero) / 1e9
        inside = requests[(ended_s >= begin) & (ended_s < end)]
        for operation, mine in inside.groupby("endpoint"):
            ok = mine[mine["outcome"] == "ok"]
            ms = ok["elapsed_ns"] / 1e6
            rows.append(
                {"system": system, "operation": operation, "ok": len(ok)}
                | {"failed": len(mine) - len(ok), "operations_per_s": len(ok) / seconds}
                | {"mb_per_s": ok["object_bytes"].sum() / seconds / 1e6}
                | {"mean_ms": ms.mean(), "p99_ms": np.percentile(ms, 99)}
            )
    return pd.DataFrame(rows)


def probe_client(directory: Path) -> pd.DataFrame:
    """Medians of the probe client's requests, idle and beside a load, and their ratio.

    From when they were sent; beside it those that were due in the part that figures are of.
    """
    sent = table(directory, "samples")
    sent = sent[sent["outcome"] == "ok"].assign(ms=lambda rows: rows["total_ns"] / 1e6)
    ((system, said),) = document(directory / "manifest.json")["load"].items()
    begin, end = _steady(directory, system)
    due_s = (sent["due_ns"].fillna(sent["start_ns"]) - said["began_ns"]) / 1e9
    after_s = due_s - said["ramp_ms"] / 1e3
    inside = (after_s >= begin) & ((after_s < end) | (begin == 0))
    sent = sent[(sent["phase"] == "idle") | inside]
    found = sent.pivot_table(index="endpoint", columns="phase", values="ms", aggfunc="median")
    return found.assign(times=found["loaded"] / found["idle"]).reset_index()


def memory(directory: Path) -> dict[str, float]:
    """Of the nodes of a run: MiB when idle and loaded, and bytes of disk at the end."""
    rows = table(directory, "resources")
    rows = rows[rows["kind"] == "node"]
    sent = table(directory, "samples")
    is_load = (directory / "load.parquet").exists()
    sent = sent[sent["phase"] == "loaded" if is_load else sent["phase"] != "prepare"]
    if is_load:
        sent = pd.concat([sent, load_of(directory)])
    events = table(directory, "events")
    begun = events.loc[events["kind"] == "loaded", "t_ns"]
    until = (sent["start_ns"] + sent["elapsed_ns"]).max() + 1e9
    is_loaded = rows["t_ns"].between(sent["start_ns"].min(), until)
    found = {"loaded": rows[is_loaded].groupby("subject")["rss_bytes"].median().mean()}
    if len(begun):
        idle = rows[rows["t_ns"] <= begun.iloc[0]]
        found["idle"] = idle.groupby("subject")["rss_bytes"].median().mean()
    space = rows.dropna(subset="space_bytes").groupby("subject")["space_bytes"].last().sum()
    return found | {"space_bytes": space}


def idle_nodes(directory: Path) -> pd.DataFrame:
    """Of each node when idle: MiB, percent of a core; the most MiB while writing and removing."""
    (said,) = document(directory / "reclaim.json")["systems"]
    rows = table(directory, "resources")
    events = table(directory, "events")
    begun = events.loc[events["kind"] == "loaded", "t_ns"].iloc[0]
    found = []
    for _, node in rows[rows["kind"] == "node"].groupby("subject"):
        idle = node[node["t_ns"] <= begun]
        cpu = 100 * np.ptp(idle["cpu_ns"]) / np.ptp(idle["t_ns"])
        mib = node["rss_bytes"] / 2**20
        busy = node["t_ns"].between(*said["filled_ns"]) | node["t_ns"].between(*said["removed_ns"])
        found.append({"idle": mib[idle.index].median(), "cpu": cpu, "most": mib[busy].max()})
    return pd.DataFrame(found)


def cpu(directory: Path, *kinds: str) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """Counters of CPU time idle and under load, a column for each subject; and its requests."""
    rows = table(directory, "resources")
    rows = rows[rows["kind"].isin(kinds)]
    wide = rows.pivot_table(index="t_ns", columns=["kind", "subject"], values="cpu_ns")
    wide = wide.interpolate("index")
    events = table(directory, "events")
    begun = events.loc[events["kind"] == "loaded", "t_ns"].iloc[0]
    requests = load_of(directory)
    probe = table(directory, "samples")
    probe = probe[probe["phase"] == "loaded"]
    first = min(requests["start_ns"].min(), probe["start_ns"].min())
    last = max((each["start_ns"] + each["elapsed_ns"]).max() for each in (requests, probe))
    busy = wide[(wide.index >= first) & (wide.index <= last + 1e8)]
    begins = pd.concat([requests["start_ns"], probe["start_ns"]])
    return wide[wide.index <= begun], busy, int(begins.between(*busy.index[[0, -1]]).sum())


def cpu_ms(directory: Path) -> float:
    """CPU time of all nodes for a request of a load, less what they use when idle."""
    idle, busy, number = cpu(directory, "node", "front")
    rates = [(part.iloc[-1] - part.iloc[0]).sum() / np.ptp(part.index) for part in (idle, busy)]
    return float((rates[1] - rates[0]) * np.ptp(busy.index) / number / 1e6)


def busiest_over_mean(directory: Path) -> float:
    """The CPU time under load of the node that used most, over the nodes' mean."""
    _, busy, _ = cpu(directory, "node")
    used = busy.iloc[-1] - busy.iloc[0]
    return float(used.max() / used.mean())


def reclaim(bundle: Path) -> dict[str, Any]:
    """Disk space before and after a removal: shares of what the removed objects took."""
    (said,) = document(bundle / "reclaim.json")["systems"]
    rows = table(bundle, "resources")
    known = rows[(rows["kind"] == "node") & rows["space_bytes"].notna()]
    values = ["space_bytes", "trash_bytes"]
    wide = known.fillna({"trash_bytes": 0.0}).pivot_table(
        index="t_ns", columns="subject", values=values
    )
    total = wide.ffill().dropna().T.groupby(level=0).sum().T
    empty, full = (total["space_bytes"].asof(said[at][0]) for at in ("filled_ns", "removed_ns"))
    taken = (full - np.nan_to_num(empty)) * said["removed"] / said["objects"]
    freed = (full - total["space_bytes"]) / taken
    gone = said["removed_ns"][1]
    after = {s: freed.asof(gone + s * 1e9) for s in (1, 60, 300, 600)}
    kept_up = freed[(freed >= 0.9)[::-1].cummin()[::-1]]
    return {
        **{name: said[name] for name in ("system", "objects", "object_bytes")},
        "full_bytes": full,
        "empty_bytes": np.nan_to_num(empty),
        "after": after,
        "freed_at_end": freed.asof(said["watched_ns"][1]),
        "freed_most_after_s": (kept_up.index.min() - gone) / 1e9,
        "trash_at_most": (total["trash_bytes"] / taken).max(),
    }


def limits(bundle: Path) -> pd.DataFrame:
    """How far a promise holds along each axis, over clusters: ms, or percent of loss."""
    rows = []
    for _, directory in clusters(bundle):
        (said,) = document(directory / "envelope.json")["systems"]
        manifest = document(directory / "manifest.json")
        options = manifest["study"].get("options", {}).get(said["system"], {})
        trials = sum(len(test["trials"]) for test in said["tests"])
        for limit in said["limits"]:
            scale, network = 100 if limit["axis"] == "loss" else 1, limit["at"]
            at = f"{100 * network['loss']:g} % lost" if network["loss"] else "no loss"
            row = {"system": said["system"], "axis": limit["axis"], "by_default": not options}
            row |= {"at": at if limit["axis"] == "rtt" else f"RTT {network['rtt_ms']:g} ms"}
            row |= {end: scale * (limit[end] or math.nan) for end in ("inside", "outside", "back")}
            row |= {"trials": trials, "options": str(sorted(options.items()))}
            rows.append(row | _timeouts(manifest))
    found = []
    for _, group in pd.DataFrame(rows).groupby(["options", "axis", "at"], sort=False):
        known = group.dropna(subset=["inside", "outside"])
        row = {**group.iloc[0], "clusters": len(group), "trials": group["trials"].sum()}
        if 2 * len(known) > len(group):
            logs = np.log(known["inside"] * known["outside"]) / 2
            half = (np.log(known["outside"] / known["inside"]) / 2).max()
            if len(group) > 1:
                half += stats.t.ppf(0.975, len(known) - 1) * stats.sem(logs)
            ends = [logs.mean(), logs.mean() - half, logs.mean() + half]
            row |= dict(zip(("limit", "limit_low", "limit_high"), np.exp(ends), strict=True))
            logs = np.log(group["back"].dropna())
            half = stats.t.ppf(0.975, len(logs) - 1) * stats.sem(logs) if len(logs) > 1 else 0.0
            ends = [logs.mean(), logs.mean() - half, logs.mean() + half]
            row |= dict(zip(("back", "back_low", "back_high"), np.exp(ends), strict=True))
        found.append(row)
    return pd.DataFrame(found)


def _timeouts(manifest: Any) -> dict[str, Any]:
    """The first of a system's timeouts, and up to which RTT its makers allow it."""
    for first in manifest["systems"][0].get("timeouts", [])[:1]:
        named = {"timeout": first["name"], "value_ms": first["ms"]}
        return named | ({"rule_ms": first["ms"] / first["rtts"]} if first.get("rtts") else {})
    return {}


def choices(bundle: Path) -> pd.DataFrame:
    """What each value of a timeout costs: seconds without a write, and kB/s of an idle cluster."""
    rows = []
    for _, directory in clusters(bundle):
        (said,) = document(directory / "envelope.json")["systems"]
        if (price := said.get("price")) is not None:
            answered = [kill["answered_s"] or math.inf for kill in price["kills"]]
            idle = {key: price[key] for key in ("idle_bytes", "idle_s")}
            named = _timeouts(document(directory / "manifest.json"))
            rows.append({"system": said["system"], **named, "answered": answered, **idle})
    found = []
    for key, group in pd.DataFrame(rows).groupby("value_ms") if rows else ():
        medians = [np.median(each) for each in group["answered"] if each]
        row = {**group.iloc[0], "value_ms": key, "clusters": len(group)}
        idle = group["idle_bytes"] / group["idle_s"] / 1e3
        row |= {"idle_kb_s": idle.mean()}
        if len(idle) > 1:
            half = stats.t.ppf(0.975, len(idle) - 1) * stats.sem(idle)
            row |= {"idle_kb_s_low": idle.mean() - half, "idle_kb_s_high": idle.mean() + half}
        if medians and np.isfinite(medians).all():
            row["answered_s"] = np.mean(medians)
            ends = (math.nan, math.nan)
            if len(medians) > 1:
                of = np.mean(medians), stats.sem(medians)
                ends = stats.t.interval(0.95, len(medians) - 1, *of)
            elif len(group["answered"].iloc[0]) == 6:  # extremes are an interval of a median of six
                ends = min(group["answered"].iloc[0]), max(group["answered"].iloc[0])
            row |= dict(zip(("answered_s_low", "answered_s_high"), ends, strict=True))
        found.append(row)
    return pd.DataFrame(found)


@cache
def with_rtt(bundle: Path) -> pd.DataFrame:
    """Samples of a study of round trips, with the RTT that was measured at their step."""
    steps = document(bundle / "rtt_steps.json")["rtt_steps"]
    rtt = {
        (step["system"], step["rtt_step"]): np.median(
            [pair["measured_rtt_ms"] for pair in step["pairs"] if "measured_rtt_ms" in pair]
        )
        for step in steps
    }
    found = samples(bundle).copy()
    at = zip(found["system"], found["rtt_step"], strict=True)
    found["rtt"] = [rtt[system, int(step)] for system, step in at]
    return found


class Line(NamedTuple):
    """Of latency against RTT: round trips, the share of requests on it, ms at RTT 0."""

    slope: float
    share: float
    intercept_ms: float


def mean_slope(found: list[Line]) -> float:
    """Round trips of a request on average, of those that are on a line."""
    return sum(one.slope * one.share for one in found) / sum(one.share for one in found)


def foretold(matrix: Path) -> dict[str, float]:
    """Of MinIO's requests the share whose round trips follow from what it kept of its drives."""
    hits: dict[str, list[bool]] = {"PutObject": [], "ListObjects": []}
    for directory in (each for values, each in points(matrix) if values["system"] == "minio"):
        steps = document(directory / "rtt_steps.json")["rtt_steps"]
        rtt = {step["rtt_step"]: step["requested_rtt_ms"] for step in steps}
        frame = table(directory, "samples").sort_values("start_ns")
        until = [0.0] * 4  # when what is known of each drive is too old, ms
        for row in frame[frame["endpoint"].isin(hits)].to_dict("records"):
            at, ms = row["start_ns"] / 1e6, rtt[row["rtt_step"]]
            if row["endpoint"] == "ListObjects":
                asked = any(end <= at for end in until)
                until = [at + ms + 1000 if end <= at else end for end in until]
            else:
                asked, at = 0, at + 2 * ms
                for drive, end in enumerate(until):
                    if end <= at:
                        asked, at = asked + 1, at + ms
                        until[drive] = at + 1000
            if row["phase"] == "measure" and ms >= 50:
                least = 5 if row["endpoint"] == "PutObject" else 2
                hits[row["endpoint"]].append(round(row["total_ns"] / 1e6 / ms) == least + asked)
    return {endpoint: float(np.mean(found)) for endpoint, found in hits.items()}


def ways(clusters: list[list[Line]]) -> dict[int, Any]:
    """Of each whole number of round trips the share of requests that take it, by cluster."""
    numbers = {round(line.slope) for lines in clusters for line in lines}
    return {
        number: np.array(
            [
                sum(one.share for one in lines if abs(one.slope - number) < 0.25)
                for lines in clusters
            ]
        )
        for number in sorted(numbers)
    }


def lines(x: Any, y: Any) -> list[Line]:
    """Lines of latency `y` against RTT `x`, ms, those of most requests first.

    Each goes through two requests; those within 20 ms of it are on it, and the next is sought
    among the rest. Shares are of RTTs at which lines lie apart.
    """
    found, left = list[Line](), np.ones(len(x), bool)
    rng = np.random.default_rng(1)
    while left.sum() >= max(5, len(x) / 20):
        i, j = rng.integers(0, left.sum(), (2, 2000))
        (px, py), far = (x[left], y[left]), np.abs(x[left][i] - x[left][j]) > 20
        slope = (py[i] - py[j])[far] / (px[i] - px[j])[far]
        start = py[i][far] - slope * px[i][far]
        inside = [(np.abs(py - a - b * px) < 5).sum() for a, b in zip(start, slope, strict=True)]
        a, b = start[int(np.argmax(inside))], slope[int(np.argmax(inside))]
        for _ in range(5):
            near = left & (np.abs(y - a - b * x) < 8)
            b, a = np.polyfit(x[near], y[near], 1)
        on = left & (np.abs(y - a - b * x) < 20)
        if on.sum() < max(5, len(x) / 20):
            break
        found.append(Line(float(b), float(on[x > APART_MS].mean()), float(a)))
        left &= ~on
    return sorted(found, key=lambda line: -line.share)


@cache
def round_trips(bundle: Path) -> pd.DataFrame:
    """Each endpoint's lines, its median at 100 ms, and what its packets and its manifest say."""
    packets = {
        (system, group["endpoint"], group["placement"]): group
        for system, said in document(bundle / "chains.json")["systems"].items()
        for group in said["groups"]
    }
    least = {
        (each["name"], row["endpoint"], row["placement"]): row["round_trips"]
        for each in document(bundle / "manifest.json")["systems"]
        for row in each.get("least_round_trips", ())
    }
    rows = []
    for key, group in with_rtt(bundle).groupby(KEYS, sort=False):
        x, y = group["rtt"].to_numpy(), group["ms"].to_numpy()
        near = y[np.abs(x - 100) <= 5]
        row: dict[str, Any] = dict(zip(KEYS, key, strict=True)) | {"n": len(y), "ok": len(y)}
        row |= {"lines": lines(x, y), "median_at_100": np.median(near) if near.size else None}
        of = key[0], key[2], key[3]
        row |= {"least": least.get(of), **_of_packets(packets.get(of) or {})}
        rows.append(row)
    return pd.DataFrame(rows)


def _of_packets(group: dict[str, Any]) -> dict[str, Any]:
    return {"paths": group.get("chains", []), "cost": group.get("cost")}


def drill(bundle: Path) -> dict[str, Any]:
    """The block of a drill in summary.json."""
    return dict(document(bundle / "summary.json")["drill"])


@cache
def packed(matrix: Path, table: str) -> dict[str, pd.DataFrame]:
    """A table of all points of a packed matrix, by the point."""
    whole = pd.read_parquet(matrix / f"{table}.parquet").rename(columns={"key_number": "key"})
    return {str(point): rows for point, rows in whole.groupby("point")}


def share(point: Path, spec: dict[str, Any]) -> tuple[int, int]:
    """How many requests of a claim's client, phase and time were ok before the phase ended, of how
    many due. Not counted: what this machine could not send.
    """
    matrix = point.parents[1]
    rows, events = (packed(matrix, name)[point.name] for name in ("samples", "events"))
    phase = spec.get("phase", "during")
    began = events[events["kind"] == "phase"].set_index("subject")["t_100us"]
    begun, ended = began[phase], began[began > began[phase]].min()
    at_s = (rows["due_100us"] - begun) / 1e4
    chosen = (rows["phase"] == phase) & (rows["operation"] == spec["of"].removesuffix("s"))
    chosen &= ~is_ours(rows) & (at_s >= seconds(spec.get("from") or "0s") - 2e-4)
    if spec.get("to"):
        chosen &= at_s < seconds(spec["to"]) - 2e-4
    if "client" in spec:
        chosen &= rows["drill_client"] == spec["client"]
    in_time = rows["start_100us"] + rows["elapsed_100us"] <= ended
    chosen &= in_time | ~(rows["start_100us"] > ended - 10_000)
    return int((in_time & (rows["outcome"] == "ok"))[chosen].sum()), int(chosen.sum())


def is_ours(rows: pd.DataFrame) -> pd.Series:
    """Which requests a client program of ours was not there to send."""
    return rows["error"].fillna("").str.contains("did not become ready")


def seconds(text: str) -> float:
    """A time as claims have it: "90s", "250ms"."""
    unit = 1e-3 if text.endswith("ms") else 60.0 if text.endswith("m") else 1.0
    return float(text.rstrip("ms")) * unit


def wrong_objects(point: Path) -> dict[str, int]:
    """Of how many keys some node said what it must not, after the heal or after the restart."""
    matrix = point.parents[1]
    ledger, asked = (packed(matrix, name)[point.name] for name in ("ledger", "verification"))
    ends = ledger[ledger["state"] != "invoked"].set_index("id")["state"]
    writes = ledger[ledger["state"] == "invoked"].assign(
        came=lambda frame: frame["id"].map(ends).fillna("unknown")
    )
    done: dict[str, dict[str, set[str]]] = {}
    for key, op, came in zip(writes["key"], writes["op"], writes["came"], strict=True):
        done.setdefault(key, {}).setdefault(op, set()).add(came)
    answers: dict[tuple[str, str], set[str]] = {}
    asked = asked[asked["key"].notna()]
    for around, key, said in zip(asked["round"], asked["key"], asked["found"], strict=True):
        answers.setdefault((around, key), set()).add(said)
    found: dict[str, set[str]] = {"lost": set(), "stale": set(), "resurrected": set()}
    for key, of in done.items():
        put, removed = of.get("put", set()), of.get("remove", set())
        is_present = "ok" in put and not removed & {"ok", "unknown"}
        is_removed = "ok" in put and "ok" in removed
        for each in ("healed", "restarted"):
            told = answers.get((each, key), set())
            if is_present and {"yes", "no"} <= told:
                found["stale"].add(key)
            elif is_present and "no" in told and "unread" not in told:
                found["lost"].add(key)
            elif is_removed and "yes" in told:
                found["resurrected"].add(key)
    return {kind: len(keys) for kind, keys in found.items()}
