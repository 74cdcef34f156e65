"""The document of ``wanlat crosscheck --json``."""

from __future__ import annotations

from typing import Any

from wanlat.experiments.crosscheck.compare import FEWEST, SLACK_MS, Comparison, Verdict, compare
from wanlat.experiments.crosscheck.lanes import ONESHOT
from wanlat.experiments.crosscheck.results import Results
from wanlat.experiments.crosscheck.wording import explain, round_trips, sentence
from wanlat.systems.base import Cluster


def document(
    topology: str,
    cluster: Cluster,
    results: Results,
    *,
    rtt_ms: float,
    samples: int,
    seed: int,
    backend: str,
    asked: str,
    distant: str,
) -> dict[str, Any]:
    """Return it: what was compared, each comparison, and the verdict over all of them."""
    endpoints = dict.fromkeys(
        endpoint for places in (results.far, results.errors) for _, endpoint in places
    )
    clients = [lane for lane in results.clients if lane.name != ONESHOT]
    entries = [
        _entry(results, endpoint, lane.name, rtt_ms, seed)
        for endpoint in sorted(endpoints)
        for lane in clients
    ]
    verdicts: list[Verdict] = ["agree", "explained", "unexplained"]
    worst = max((verdicts.index(entry["verdict"]) for entry in entries), default=0)
    return {
        "topology": topology,
        "backend": backend,
        "seed": seed,
        "system": cluster.system,
        "version": cluster.version,
        "label": cluster.label,
        "sha256": cluster.sha256,
        "api": cluster.api,
        "asked": asked,
        "standing": {"distance": distant, "loopback": asked},
        "rtt_ms": _ms(rtt_ms),
        "samples": samples,
        "slack_ms": SLACK_MS,
        "clients": [
            {
                "name": lane.name,
                "version": lane.version,
                "configured": lane.configured,
                "first_request": _first(results, lane.name, rtt_ms),
            }
            for lane in clients
        ],
        "comparisons": entries,
        "verdict": verdicts[worst],
    }


def _entry(
    results: Results, endpoint: str, client: str, rtt_ms: float, seed: int
) -> dict[str, Any]:
    mine, theirs = (client, endpoint), (ONESHOT, endpoint)
    entry: dict[str, Any] = {
        "endpoint": endpoint,
        "client": client,
        "n": len(results.far[mine]),
        "failed": len(results.errors[mine]),
        "error": next(iter(results.errors[mine]), None),
    }
    short = [
        f"{name}: {len(results.errors[name, endpoint])} failed, first with "
        f"{results.errors[name, endpoint][0]}"
        if results.errors[name, endpoint]
        else f"{name}: too few samples"
        for name in (ONESHOT, client)
        if min(len(results.far[name, endpoint]), len(results.near[name, endpoint])) < FEWEST
    ]
    if short:
        return entry | _nothing("; ".join(short))
    found = compare(
        results.far[mine],
        results.far[theirs],
        results.near[mine],
        results.near[theirs],
        rtt_ms=rtt_ms,
        seed=seed,
    )
    return entry | _compared(found, endpoint, client, rtt_ms, entry["n"])


def _nothing(reason: str) -> dict[str, Any]:
    return {
        "oneshot_ms": None,
        "client_ms": None,
        "overhead_ms": None,
        "overhead_ci95_ms": None,
        "difference_ms": None,
        "difference_ci95_ms": None,
        "extra_ms": None,
        "extra_ci95_ms": None,
        "extra_round_trips": None,
        "answer_ms": None,
        "compared": None,
        "explained_ms": None,
        "explained_by": [],
        "also_seen": [],
        "verdict": "unexplained",
        "reason": reason,
    }


def _compared(
    found: Comparison, endpoint: str, client: str, rtt_ms: float, requests: int
) -> dict[str, Any]:
    return {
        "oneshot_ms": _pair(found.oneshot_ms),
        "client_ms": _pair(found.client_ms),
        "overhead_ms": _ms(found.figures.overhead),
        "overhead_ci95_ms": [_ms(end) for end in found.figures.overhead_ci95],
        "difference_ms": _ms(found.figures.difference),
        "difference_ci95_ms": [_ms(end) for end in found.figures.difference_ci95],
        "extra_ms": _ms(found.figures.extra),
        "extra_ci95_ms": [_ms(end) for end in found.figures.extra_ci95],
        "extra_round_trips": round(found.figures.extra / rtt_ms, 2),
        "answer_ms": {"client": _ms(found.answer_ms[0]), "oneshot": _ms(found.answer_ms[1])},
        "compared": found.compared,
        "explained_ms": _ms(found.explained_ms),
        "explained_by": [
            {
                "kind": one.extra.kind,
                "what": one.extra.what,
                "ms": _ms(one.ms),
                "waited_ms": _ms(one.waited_ms),
                "round_trips": round(one.ms / rtt_ms, 2),
                "requests": one.requests,
                "text": explain(client, endpoint, one, rtt_ms),
            }
            for one in found.explanations
        ],
        "also_seen": [
            f"{explain(client, endpoint, one, rtt_ms)}, in {one.requests} of {requests} requests"
            for one in found.rarely
        ],
        "verdict": found.verdict,
        "reason": found.reason,
    }


def _first(results: Results, client: str, rtt_ms: float) -> list[str]:
    """Say what a client waited for in its very first request, and in that one alone perhaps."""
    if client not in results.first:
        return []
    endpoint, waited = results.first[client]
    return [
        f"{sentence(client, endpoint, extra)}: {round_trips(ns / 1e6, rtt_ms)}"
        for extra, ns in waited.network.items()
        if extra.kind != "pause"
    ]


def _pair(values: tuple[float, float]) -> dict[str, float]:
    return {"distance": _ms(values[0]), "loopback": _ms(values[1])}


def _ms(value: float) -> float:
    return round(value, 3)
