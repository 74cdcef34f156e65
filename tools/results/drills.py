"""What drills found, as templates ask for it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tools.results.figures import bundle_at, document
from wanlat.analysis.claims import due_of
from wanlat.bundle.read import POINTS, bundles_below, read_json
from wanlat.experiments.drill.model import PHASES
from wanlat.systems.placement import Layout


class Fared(NamedTuple):
    """How requests of one client and kind fared in the runs of a drill: a number of each run."""

    ok: list[int]
    due: list[int]
    p50_s: list[float | None]
    """Of the ok ones, from when they were sent; None where there are none."""

    def __str__(self) -> str:
        """All runs together: "358/360"."""
        return f"{sum(self.ok)}/{sum(self.due)}"


def fared(home: Path, bundle: str, name: str, system: str, client: str, operations: str) -> Fared:
    """Return how a client's `reads`, `writes` or `lists` fared during the fault of a drill."""
    runs = drills(home, bundle, name=name, system=system)
    of = [each[operations] for run in runs for each in run["clients"] if each["client"] == client]
    if not of or None in of:
        raise LookupError(f"{home / bundle}: {client} sent no {operations} in {name} on {system}.")
    during = [each["phases"]["during"] for each in of]
    return Fared(
        ok=[each["ok"] for each in during],
        due=list(map(due_of, during)),
        p50_s=[
            each["from_start"]["p50_ms"] and each["from_start"]["p50_ms"] / 1e3 for each in during
        ],
    )


def requests(
    home: Path, bundle: str, name: str, system: str, client: str, operation: str
) -> list[pd.DataFrame]:
    """Return what was due of a client during the fault of a drill, a row a request, by run.

    `endpoint`; `at_s`: when it was due, after the fault began; `took_s`, of the ok ones that the
    machine did not make late, from when they were sent; `in_time`: ok before the heal; `put_at`:
    the client that put the object during the fault, if one did.
    """
    found = []
    for point, opened in bundle_at(home / bundle).points.items():
        if point.rpartition("-")[0] != f"{name}-{system}":
            continue
        events = opened.table("events")
        phases_ns = events[events["kind"] == "phase"].set_index("subject")["t_ns"]
        due = opened.samples.query(
            "phase == 'during' and drill_client == @client and operation == @operation"
            " and outcome != 'not_sent'"
        )
        ok = due["outcome"] == "ok"
        puts = opened.samples.query("phase == 'during' and outcome == 'ok'")
        puts = puts[puts["endpoint"].str.startswith("Put")].drop_duplicates("key").set_index("key")
        found.append(
            pd.DataFrame(
                {
                    "endpoint": due["endpoint"],
                    "at_s": (due["due_ns"] - phases_ns["during"]) / 1e9,
                    "took_s": (due["elapsed_ns"] / 1e9).where(ok & ~due["late"].eq(True)),
                    "in_time": ok & (due["start_ns"] + due["elapsed_ns"] <= phases_ns["after"]),
                    "put_at": due["key"].map(puts["drill_client"]),
                }
            )
        )
    if not any(map(len, found)):
        raise LookupError(f"{home / bundle}: {client} sent no {operation} in {name} on {system}.")
    return found


class Share(NamedTuple):
    """How many of those that were sent were ok."""

    ok: int
    sent: int

    def __str__(self) -> str:
        """Return it as pages have it."""
        return f"{self.ok}/{self.sent}"


def puts_by_copy(home: Path, bundle: str, name: str, client: str) -> dict[str, list[Share]]:
    """Return Bob's Puts of a drill that were sent during the fault, by run.

    Of blobs of which the node that is asked has a replica (`own`), and of `others`.
    """
    found: dict[str, list[Share]] = {"own": [], "others": []}
    for point, opened in bundle_at(home / bundle).points.items():
        if point.rpartition("-")[0] != f"{name}-bob":
            continue
        manifest = document(home, f"{bundle}/{POINTS}/{point}/manifest.json")
        layout = Layout(tuple(map(tuple, manifest["systems"][0]["options"]["placement"])))
        asked = manifest["clients"][client]["target"]
        ledger = opened.table("ledger").dropna(subset="name").astype({"key": str})
        names = ledger.drop_duplicates("key").set_index("key")["name"]
        sent = opened.samples.query(
            "phase == 'during' and drill_client == @client and endpoint == 'Put'"
        ).dropna(subset="start_ns")
        keys = [bytes.fromhex(names[key]) for key in sent["key"].astype(str)]
        is_own = np.array([asked in layout.replicas(key) for key in keys], dtype=bool)
        for which, of in (("own", sent[is_own]), ("others", sent[~is_own])):
            found[which].append(Share(int(of["outcome"].eq("ok").sum()), len(of)))
    return found


def not_there(home: Path, bundle: str, name: str, system: str) -> list[int]:
    """Return how many reads of a drill were told that an acknowledged object is not there, by run.

    By status 404, of an object whose put was acknowledged before the read was sent, and whose
    removal nobody had begun when it was answered.
    """
    found = []
    for point, opened in bundle_at(home / bundle).points.items():
        if point.rpartition("-")[0] != f"{name}-{system}":
            continue
        sent = opened.samples.assign(
            end_ns=opened.samples["start_ns"] + opened.samples["elapsed_ns"]
        )
        puts = sent[sent["endpoint"].str.startswith("Put") & (sent["outcome"] == "ok")]
        removals = sent[sent["endpoint"].str.startswith("Remove")]
        reads = sent[(sent["operation"] == "read") & (sent["status"] == 404)]
        known_ns, gone_ns = (
            reads["key"].map(each).astype("Float64").fillna(np.inf)
            for each in (
                puts.groupby("key")["end_ns"].min(),
                removals.groupby("key")["start_ns"].min(),
            )
        )
        is_there = (known_ns <= reads["start_ns"]) & (gone_ns >= reads["end_ns"])
        found.append(int(is_there.sum()))
    return found


def sent_late(home: Path, *bundles: str) -> list[float]:
    """Return the share of requests that were sent more than 100 ms late, of each phase and run."""
    found: list[float] = []
    for bundle in bundles:
        for each in bundle_at(home / bundle).points.values():
            sent = each.samples.dropna(subset=["start_ns", "due_ns"])
            sent = sent[sent["phase"].isin(PHASES)]
            late = sent["start_ns"] - sent["due_ns"] > 100e6
            found += late.groupby(sent["phase"].astype(str)).mean().tolist()
    return found


def drills(home: Path, bundle: str, **where: Any) -> list[dict[str, Any]]:
    """Return what the stored summaries of drills say that have these values; none is left out."""
    points = [each for each in bundles_below(home / bundle) if each.parent.name == POINTS]
    found = [read_json(each / "summary.json")["drill"] for each in points]
    return [each for each in found if where.items() <= each.items()]


def drill_claims(home: Path, matrix: str) -> list[dict[str, str]]:
    """Return a row for each claim of each drill: what came of it in all runs, by system."""
    found = document(home, matrix)
    told: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for cell in found["cells"]:
        for run in sorted(cell["runs"], key=lambda run: str(run["bundle"])):
            for claim in run["claims"]:
                told.setdefault((cell["drill"], claim["id"], cell["system"]), []).append(claim)
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    nobody = {each["system"]: "" for each in found["systems"]}
    for claim in found["claims"]:  # what is said of two stores in the same words is one row
        words = {key: claim[key] for key in ("drill", "claim", "bound")}
        line = lines.setdefault((*words.values(),), words | nobody)
        for each in nobody:
            line[each] += _verdicts(told.get((claim["drill"], claim["id"], each), ()))
    return [*lines.values()]


def _verdicts(claims: Sequence[dict[str, str]]) -> str:
    """Say what several runs of one drill say of a claim, and on how many requests that rests."""
    kinds = Counter(claim["verdict"] for claim in claims)
    if not kinds:
        return ""
    words = {"does not hold": "**does not hold**"}
    many = len(claims) > 1
    said = ", ".join(
        f"{words.get(kind, kind)}{f' in {_of(number, len(claims))}' if many else ''}"
        for kind, number in kinds.most_common()
    )
    shares = [re.match(r"(\d+) of (\d+) ", claim["evidence"]) for claim in claims]
    counted = [(int(share[1]), int(share[2])) for share in shares if share]
    wrong = [
        re.findall(r"(\d+) (lost|stale|corrupt|resurrected)", each["evidence"]) for each in claims
    ]
    if counted:
        said += f"; {sum(ok for ok, _ in counted)}/{sum(sent for _, sent in counted)}"
    elif kinds["does not hold"] or any(wrong):
        numbers = {kind: [0] * len(claims) for pairs in wrong for _, kind in pairs}
        for place, pairs in enumerate(wrong):
            for number, kind in pairs:
                numbers[kind][place] = int(number)
        said += "; " + ", ".join(
            f"{' + '.join(map(str, of))} {kind}" for kind, of in numbers.items()
        )
    return said


def _of(number: int, whole: int) -> str:
    return f"all {whole}" if number == whole else f"{number} of {whole}"
