"""Figures of a bundle computed a second time, from its Parquet and JSON, with pandas and scipy.

Nothing of the project's analysis is imported here or in the tests: this is the arithmetic of
somebody who read docs/reference and no code. Each function takes the directory of one run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

KEYS = ["system", "version", "endpoint", "placement"]
APART_MS = 40
"""From this RTT on lines of different round trips lie apart."""


def document(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def table(bundle: Path, name: str) -> pd.DataFrame:
    return pd.read_parquet(bundle / f"{name}.parquet")


def lines_of(bundle: Path, name: str) -> pd.DataFrame:
    text = (bundle / f"{name}.jsonl").read_text("utf-8")
    return pd.DataFrame([json.loads(line) for line in text.splitlines()])


def measured(bundle: Path) -> pd.DataFrame:
    """Requests of the phase that counts, that were sent; latency in ms."""
    rows = table(bundle, "samples")
    rows = rows[(rows["phase"] == "measure") & (rows["outcome"] != "not_sent")]
    return rows.assign(ms=rows["total_ns"].astype(float) / 1e6)


def in_time(bundle: Path) -> pd.DataFrame:
    """Those of them that succeeded on a network that was as requested."""
    rows = measured(bundle)
    return rows[(rows["outcome"] == "ok") & ~rows["late"].eq(True)]


def latencies(bundle: Path) -> pd.DataFrame:
    """A row for each endpoint and placement: outcomes, and statistics of its latency."""
    outcomes = measured(bundle).groupby(KEYS)["outcome"].value_counts().unstack(fill_value=0)
    rows = []
    for key, group in in_time(bundle).groupby(KEYS, sort=False):
        ms = group["ms"].to_numpy()
        first, third = np.percentile(ms, [25, 75])
        reach = 1.5 * (third - first)
        far = (ms < first - reach) | (ms > third + reach)
        row: dict[str, Any] = dict(zip(KEYS, key, strict=True))
        row |= {name: int(outcomes.loc[key].get(name, 0)) for name in ("ok", "fail", "unknown")}
        row |= {"mean_ms": ms.mean(), "median_ms": np.median(ms), "min_ms": ms.min()}
        row |= {"max_ms": ms.max(), "p95_ms": np.percentile(ms, 95), "outliers": int(far.sum())}
        rows.append(row | {"n": len(ms), "p99_ms": np.percentile(ms, 99)})
    return pd.DataFrame(rows)


class Line(NamedTuple):
    """Of latency against RTT: round trips, the share of requests on it, ms at RTT 0."""

    slope: float
    share: float
    intercept_ms: float


def lines(x: Any, y: Any) -> list[Line]:
    """Lines of latency `y` against RTT `x`, ms, those of most requests first.

    Each goes through two requests; those within 20 ms of it are on it, and the next is sought
    among the rest. Shares are of RTTs at which lines lie apart.
    """
    made, left = list[Line](), np.ones(len(x), bool)
    rng = np.random.default_rng(1)
    while left.sum() >= max(5, len(x) / 20):
        i, j = rng.integers(0, left.sum(), (2, 2000))
        (px, py), far = (x[left], y[left]), np.abs(x[left][i] - x[left][j]) > 20
        if not far.any():
            break
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
        made.append(Line(float(b), float(on[x > APART_MS].mean()), float(a)))
        left &= ~on
    return sorted(made, key=lambda line: -line.share)


def round_trips(bundle: Path) -> dict[tuple[str, str], list[Line]]:
    """The lines of each endpoint and placement, at the RTTs that were measured."""
    rtt_ms = {
        (step["system"], step["rtt_step"]): np.median(
            [pair["measured_rtt_ms"] for pair in step["pairs"] if "measured_rtt_ms" in pair]
        )
        for step in document(bundle / "rtt_steps.json")["rtt_steps"]
    }
    rows = in_time(bundle)
    steps = zip(rows["system"], rows["rtt_step"], strict=True)
    rows = rows.assign(rtt=[float(rtt_ms[system, int(step)]) for system, step in steps])
    return {
        (str(endpoint), str(placement)): lines(group["rtt"].to_numpy(), group["ms"].to_numpy())
        for (endpoint, placement), group in rows.groupby(["endpoint", "placement"])
    }


def load(bundle: Path, begin_s: float, end_s: float) -> pd.DataFrame:
    """Rates and latencies of each operation that ended between these instants after the ramp."""
    rows = table(bundle, "load")
    ((_, began),) = document(bundle / "manifest.json")["load"].items()
    zero_ns = began["began_ns"] + began["ramp_ms"] * 1e6
    ended_s = (rows["start_ns"] + rows["elapsed_ns"] - zero_ns) / 1e9
    inside = rows[(ended_s >= begin_s) & (ended_s < end_s)]
    made = []
    for operation, mine in inside.groupby("endpoint"):
        ok = mine[mine["outcome"] == "ok"]
        row: dict[str, Any] = {"operation": operation, "ok": len(ok)}
        row |= {"fail": int((mine["outcome"] == "fail").sum())}
        row |= {"operations_per_s": len(ok) / (end_s - begin_s), "bytes": ok["object_bytes"].sum()}
        row |= {f"p{q}_ms": np.percentile(ok["elapsed_ns"] / 1e6, q) for q in (50, 95, 99)}
        made.append(row | {"mean_ms": (ok["elapsed_ns"] / 1e6).mean()})
    return pd.DataFrame(made)


def probe_client_idle(bundle: Path) -> pd.Series:
    """Median latencies of the probe client before the load, from when it sent, ms."""
    rows = table(bundle, "samples")
    rows = rows[(rows["phase"] == "idle") & (rows["outcome"] == "ok") & ~rows["late"].eq(True)]
    return (rows["total_ns"] / 1e6).groupby(rows["endpoint"].astype(str)).median()


def reclaim(bundle: Path) -> dict[str, Any]:
    """Disk space of all nodes before and after a removal, and the shares that were given back."""
    (about,) = document(bundle / "reclaim.json")["systems"]
    rows = table(bundle, "resources")
    rows = rows[(rows["kind"] == "node") & rows["space_bytes"].notna()]
    wide = rows.pivot_table(index="t_ns", columns="subject", values="space_bytes")
    total = wide.ffill().dropna().sum(axis=1)
    empty, full = (total.asof(about[at][0]) for at in ("filled_ns", "removed_ns"))
    taken = (full - np.nan_to_num(empty)) * about["removed"] / about["objects"]
    return {
        "full_bytes": full,
        "freed_at_end": (full - total.asof(about["watched_ns"][1])) / taken,
        "removed": about["removed"],
    }


class Limit(NamedTuple):
    """Up to where a promise held, with its interval."""

    limit: float
    low: float
    high: float


def limit(clusters: Iterable[Path]) -> Limit:
    """The greatest RTT without loss on which the promise held, over clusters, ms.

    Between what held and what did not, at the middle of logarithms; over clusters Student's.
    """
    inside, outside = [], []
    for bundle in clusters:
        (about,) = document(bundle / "envelope.json")["systems"]
        axes = [each for each in about["limits"] if each["axis"] == "rtt"]
        (axis,) = [each for each in axes if each["at"]["loss"] == 0]
        inside.append(math.log(axis["inside"]))
        outside.append(math.log(axis["outside"]))
    middles = (np.array(inside) + np.array(outside)) / 2
    half = (np.array(outside) - np.array(inside)).max() / 2
    if len(middles) > 1:
        half += stats.t.ppf(0.975, len(middles) - 1) * stats.sem(middles)
    return Limit(*np.exp([middles.mean(), middles.mean() - half, middles.mean() + half]))


def share_in_window(bundle: Path, test: Any) -> list[float]:
    """The shares of requests that were ok, of the trials of one tested network that count.

    A trial in which this machine sent late is repeated, and is not among the network's trials.
    """
    rows = table(bundle, "samples")
    rows = rows[(rows["rtt_step"] == test["number"]) & (rows["phase"] == "window")]
    spans = [trial["span_ns"] for trial in test["trials"]]
    rows = rows[[any(a <= t <= b for a, b in spans) for t in rows["start_ns"]]]
    rows = rows[rows["outcome"] != "not_sent"]
    trial = rows["drill_client"].astype(str).str.partition("-")[0]
    return [float(share) for share in (rows["outcome"] == "ok").groupby(trial).mean()]


def served(bundle: Path, phase: str, operation: str) -> dict[str, Any]:
    """Requests of a drill that were due in a phase, and latencies of the ok ones, ms."""
    rows = table(bundle, "samples")
    rows = rows[(rows["phase"] == phase) & (rows["operation"] == operation)]
    ok = rows[(rows["outcome"] == "ok") & ~rows["late"].eq(True)]
    since_due_ms = (ok["start_ns"] + ok["elapsed_ns"] - ok["due_ns"]) / 1e6
    not_sent = int((rows["outcome"] == "not_sent").sum())
    answered = int((rows["outcome"] == "ok").sum())
    found = {"attempted": len(rows), "ok": answered, "not_sent": not_sent}
    found |= {"availability": answered / (len(rows) - not_sent)}
    return found | {f"p{q}_ms": np.percentile(since_due_ms, q) for q in (50, 99)}


def wrong_objects(bundle: Path) -> dict[str, int]:
    """Of how many keys some node answered wrongly, after the heal or after the restart."""
    ledger, answers = lines_of(bundle, "ledger"), lines_of(bundle, "verification")
    ends = ledger[ledger["state"] != "invoked"].set_index("id")["state"]
    writes = ledger[ledger["state"] == "invoked"]
    results = writes["id"].map(ends).fillna("unknown")
    done: dict[str, dict[str, set[str]]] = {}
    for key, op, result in zip(writes["key"], writes["op"], results, strict=True):
        done.setdefault(key, {}).setdefault(op, set()).add(result)
    said: dict[tuple[str, str], set[str]] = {}
    answers = answers[answers["key"].notna()]
    for name, key, answer in zip(answers["round"], answers["key"], answers["found"], strict=True):
        said.setdefault((name, key), set()).add(answer)
    wrong: dict[str, set[str]] = {"lost": set(), "stale": set(), "resurrected": set()}
    for key, results_of in done.items():
        put, removed = results_of.get("put", set()), results_of.get("remove", set())
        is_present = "ok" in put and not removed & {"ok", "unknown"}
        is_removed = "ok" in put and "ok" in removed
        for name in ("healed", "restarted"):
            heard = said.get((name, key), set())
            if is_present and {"yes", "no"} <= heard:
                wrong["stale"].add(key)
            elif is_present and "no" in heard and "unread" not in heard:
                wrong["lost"].add(key)
            elif is_removed and "yes" in heard:
                wrong["resurrected"].add(key)
    return {kind: len(keys) for kind, keys in wrong.items()}


def acknowledged(bundle: Path) -> int:
    """Puts whose success was acknowledged."""
    ledger = lines_of(bundle, "ledger")
    puts = ledger.loc[ledger["op"] == "put", "id"]
    return int(ledger.loc[ledger["state"] == "ok", "id"].isin(puts).sum())
