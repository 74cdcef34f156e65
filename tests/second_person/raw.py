"""What the stored bundles say, computed from their Parquet and JSON with pandas and scipy alone.

Nothing of the project's analysis is imported here or beside: these are the sums of a second person,
who read docs/reference and no code.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
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
    """A JSON file."""
    return json.loads(path.read_text("utf-8"))


@cache
def bundles() -> tuple[Path, ...]:
    """The directories of all bundles: of a matrix that of the whole, of many drills each one."""
    kinds = {path.parent: document(path)["kind"] for path in RESULTS.glob("**/manifest.json")}
    matrices = {path for path, kind in kinds.items() if kind == "matrix"}
    found = {path for path in kinds if kinds[path] != "drills" and not matrices & set(path.parents)}
    return tuple(sorted(found))


def study_of(bundle: Path) -> str:
    """What was run: the name of the study or of the drill."""
    manifest = document(bundle / "manifest.json")
    return str((manifest.get("study") or manifest["drill"])["name"])


@cache
def samples(directory: Path) -> pd.DataFrame:
    """The measured requests that succeeded on a network that was as asked for; latency in ms."""
    found = pd.read_parquet(directory / "samples.parquet")
    found = found[(found["phase"] == "measure") & (found["outcome"] == "ok")].copy()
    if "late" in found:  # the network was, and they were taken again
        found = found[~found["late"].eq(True)]
    found["ms"] = found["total_ns"].astype(float) / 1e6
    if "placement" not in found:
        found["placement"] = "unknown"
    return found


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
            n_resamples=2999,
            method="BCa" if statistic == "mean" else "percentile",
            rng=np.random.default_rng(1),
        ).confidence_interval
    return float(found.low), float(found.high)


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
        yield {}, bundle


def points(matrix: Path) -> Iterator[tuple[dict[str, Any], Path]]:
    """The points of a matrix, with their values."""
    for point in document(matrix / "points.json")["points"]:
        values = {name.rpartition(".")[2]: value for name, value in point["values"].items()}
        yield {"system": point["system"], **point["values"], **values}, matrix / point["directory"]


def sizes(matrix: Path) -> pd.DataFrame:
    """The latencies of reads and writes of a matrix over object sizes."""
    frames = []
    for values, directory in points(matrix):
        found = latencies(directory)
        found["operation"] = found["endpoint"].map(OPERATIONS)
        number, unit = values["object_size"][:-3], values["object_size"][-3:]
        same_key = values.get("key_mode") == "same"
        found["nodes"], found["object_bytes"] = values["nodes"], int(number) * UNITS[unit]
        found["keys"], found["others"] = "one" if same_key else "fresh", ""
        frames.append(found[found["operation"].notna()])
    found = pd.concat(frames, ignore_index=True)
    found["mean_over_median"] = found["mean_ms"] / found["median_ms"]
    both = [mean_interval(tuple(ms), "both") for ms in found["ms"]]
    found["mean_over_median_low"], found["mean_over_median_high"] = zip(*both, strict=True)
    return found


def load(directory: Path) -> pd.DataFrame:
    """Rates and latencies of each operation under load, from the end of the ramp on."""
    rows = []
    frame = pd.read_parquet(directory / "load.parquet")
    manifest = document(directory / "manifest.json")["load"]
    for system, requests in frame.groupby("system"):
        said = manifest[system]
        zero = said["began_ns"] + said["ramp_ms"] * 1e6
        seconds = (said["ended_ns"] - zero) / 1e9
        ended_s = (requests["start_ns"] + requests["elapsed_ns"] - zero) / 1e9
        inside = requests[(ended_s >= 0) & (ended_s < seconds)]
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


def memory(directory: Path) -> dict[str, float]:
    """Of the nodes of a run: MiB when idle and loaded, and bytes of disk at the end."""
    rows = pd.read_parquet(directory / "resources.parquet")
    rows = rows[rows["kind"] == "node"]
    sent = pd.read_parquet(directory / "samples.parquet")
    is_load = (directory / "load.parquet").exists()
    sent = sent[sent["phase"] == "loaded" if is_load else sent["phase"] != "prepare"]
    if is_load:
        sent = pd.concat([sent, pd.read_parquet(directory / "load.parquet")])
    events = pd.read_parquet(directory / "events.parquet")
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
    rows = pd.read_parquet(directory / "resources.parquet")
    events = pd.read_parquet(directory / "events.parquet")
    begun = events.loc[events["kind"] == "loaded", "t_ns"].iloc[0]
    found = []
    for _, node in rows[rows["kind"] == "node"].groupby("subject"):
        idle = node[node["t_ns"] <= begun]
        cpu = 100 * np.ptp(idle["cpu_ns"]) / np.ptp(idle["t_ns"])
        mib = node["rss_bytes"] / 2**20
        busy = node["t_ns"].between(*said["filled_ns"]) | node["t_ns"].between(*said["removed_ns"])
        found.append({"idle": mib[idle.index].median(), "cpu": cpu, "most": mib[busy].max()})
    return pd.DataFrame(found)


def cpu_ms(directory: Path) -> float:
    """CPU time of all nodes for a request of a load, less what they use when idle."""
    rows = pd.read_parquet(directory / "resources.parquet")
    rows = rows[rows["kind"].isin(["node", "front"])]
    wide = rows.pivot_table(index="t_ns", columns="subject", values="cpu_ns").interpolate("index")
    events = pd.read_parquet(directory / "events.parquet")
    begun = events.loc[events["kind"] == "loaded", "t_ns"].iloc[0]
    requests = pd.read_parquet(directory / "load.parquet", columns=["start_ns", "elapsed_ns"])
    probe = pd.read_parquet(directory / "samples.parquet")
    probe = probe[probe["phase"] == "loaded"]
    first = min(requests["start_ns"].min(), probe["start_ns"].min())
    last = (requests["start_ns"] + requests["elapsed_ns"]).max()
    idle, busy = wide[wide.index <= begun], wide[(wide.index >= first) & (wide.index <= last + 1e9)]
    rates = [(part.iloc[-1] - part.iloc[0]).sum() / np.ptp(part.index) for part in (idle, busy)]
    number = len(requests) + len(probe)
    return float((rates[1] - rates[0]) * np.ptp(busy.index) / number / 1e6)


def reclaim(bundle: Path) -> dict[str, Any]:
    """Disk space before and after a removal: shares of what the removed objects took."""
    (said,) = document(bundle / "reclaim.json")["systems"]
    rows = pd.read_parquet(bundle / "resources.parquet")
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


def lines(x: Any, y: Any) -> list[Line]:
    """Lines of latency `y` against RTT `x`, ms, those of most requests first.

    Each goes through two requests; those within 20 ms of it are on it, and the next is sought
    among the rest. Shares are of RTTs at which lines lie apart.
    """
    found, left = list[Line](), np.ones(len(x), bool)
    rng = np.random.default_rng(1)
    while left.sum() >= max(5, len(x) / 20):
        i, j = rng.integers(0, left.sum(), (2, 6000))
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
    """The block of a drill in summary.json: its samples are not stored."""
    return dict(document(bundle / "summary.json")["drill"])
