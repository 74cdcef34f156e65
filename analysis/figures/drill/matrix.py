"""Many drills on many systems, side by side: what each did during the fault and after it.

Everything comes from the bundles' summaries. Runs of the same drill, on the same topology, at the
same scale, on the same version of a system are runs of one cell: the newest complete one is shown,
all are counted and listed, and a run that lost something or broke a claim is never
hidden by a newer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from wanlat.analysis.claims import Verdict, due_of
from wanlat.analysis.figures.drill.lacking import TABLES
from wanlat.analysis.figures.drill.read import read_drill
from wanlat.analysis.figures.drill.verdicts import WRONG, bound_of, corrected
from wanlat.bundle import beneath
from wanlat.bundle.beneath import POINTS
from wanlat.bundle.documents import NOT_SENT, Titles, titles_of
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import bundles_below, has_table, read_json, read_manifest
from wanlat.bundle.run import Series

Row = Mapping[str, Any]


class DrillKey(NamedTuple):
    """What a row of the matrix stands for."""

    name: str
    topology: str
    scale: float


@dataclass(frozen=True)
class DrillRun:
    """One bundle: its drill and system, what matrix.json has of it, and its claims as evaluated."""

    drill: DrillKey
    series: Series
    figures: Row
    claims: Sequence[Row]

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """Its own verdicts, corrected for this run alone."""
        return [{key: claim[key] for key in ("id", "verdict", "evidence")} for claim in self.claims]

    @property
    def wrong(self) -> dict[str, int]:
        """How many keys have each verdict that fails a drill, where any has."""
        counts = self.figures["durability"]
        return {name: n for name in WRONG if (n := counts.get(name))}


@dataclass(frozen=True)
class DrillMatrix:
    """Drills (rows) and versions of systems (columns), in the order in which runs were given.

    A pair that was never run has no cell. The runs of a cell are the complete ones first, the
    newest of them first: that is shown. `claims` has a row for each claim of each drill, with its
    `bound`, and under `verdicts` what came of it on each system, corrected for all of them at once.
    `titles` are the systems'.
    """

    drills: Sequence[DrillKey]
    series: Sequence[Series]
    cells: Mapping[tuple[DrillKey, Series], Sequence[DrillRun]]
    claims: Sequence[Row]
    titles: Titles

    def to_json(self) -> dict[str, Any]:
        """The document of matrix.json."""
        cells = [
            (key, one, self.cells[key, one])
            for key in self.drills
            for one in self.series
            if (key, one) in self.cells
        ]
        claims = [
            {
                **{**row, "drill": row["drill"].name},
                "verdicts": [
                    {**one._asdict(), **verdict} for one, verdict in row["verdicts"].items()
                ],
            }
            for row in self.claims
        ]
        return {
            "drills": [key._asdict() for key in self.drills],
            "systems": [one._asdict() for one in self.series],
            "cells": [
                {
                    **{"drill": key.name, "topology": key.topology, "scale": key.scale},
                    **one._asdict(),
                    "runs": [{**run.figures, "claims": run.verdicts} for run in runs],
                }
                for key, one, runs in cells
            ],
            "claims": claims,
        }


def worst(runs: Sequence[DrillRun]) -> DrillRun:
    """The run with the worst durability, the shown one among equals."""
    order = ("fail", "unknown", "pass")
    verdicts = [order.index(run.figures["durability"]["verdict"]) for run in runs]
    ranked = sorted(range(len(runs)), key=lambda n: (verdicts[n], -sum(runs[n].wrong.values())))
    return runs[ranked[0]]


def read_drills(places: Sequence[Path | str]) -> DrillMatrix:
    """The matrix of the bundles at `places`; one that is no bundle is searched for bundles.

    Raises BundleError if one of them is no bundle of a drill and holds none.
    """
    directories = dict.fromkeys(path for place in places for path in _bundles_at(Path(place)))
    titles = titles_of(*map(read_manifest, directories))
    return matrix_of((run_of(path, _document(path)) for path in directories), titles)


def matrix_of(runs: Iterable[DrillRun], titles: Titles) -> DrillMatrix:
    """The matrix of `runs`."""
    cells: dict[tuple[DrillKey, Series], list[DrillRun]] = {}
    for run in runs:
        cells.setdefault((run.drill, run.series), []).append(run)
    for many in cells.values():
        many.sort(
            key=lambda run: (run.figures["status"] == "complete", run.figures["started"] or ""),
            reverse=True,
        )
    drills = list(dict.fromkeys(key for key, _ in cells))
    series = list(dict.fromkeys(one for _, one in cells))
    rows: dict[tuple[DrillKey, str], dict[str, Any]] = {}
    for key, one in ((key, one) for key in drills for one in series):
        for claim in (claim for run in cells.get((key, one), ()) for claim in run.claims):
            words = {name: str(claim.get(name) or "") for name in ("id", "claim", "source")}
            new = {"drill": key, **words, "bound": bound_of(claim), "verdicts": {}}
            row = rows.setdefault((key, words["id"]), new)
            row["verdicts"].setdefault(one, []).append(claim)
    entries = [(row["verdicts"], one) for row in rows.values() for one in row["verdicts"]]
    judged = corrected([_judged(verdicts[one]) for verdicts, one in entries])
    for (verdicts, one), verdict in zip(entries, judged, strict=True):
        verdicts[one] = verdict
    return DrillMatrix(drills, series, cells, list(rows.values()), titles)


def run_of(directory: Path, document: Row) -> DrillRun:
    """The run in `directory`, with `document`, the block `drill` of its summary.json.

    Raises BundleError for what that lacks.
    """
    kept = ("longest_outage_s", "recovered", "recovery_s", "durability")
    try:
        figures = {
            "bundle": str(directory),
            "at_once": _at_once(directory),
            **{key: document[key] for key in ("started", "status", "reached")},
            "during": {one: _served(document, one) for one in ("reads", "writes")},
            **{key: document[key] for key in kept},
        }
        key = DrillKey(document["name"], document["topology"], float(document["scale"]))
        series = Series(document["system"], document["version"])
        return DrillRun(key, series, figures, document["claims"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BundleError(
            f"{directory / 'summary.json'} is damaged or of another version: "
            f"{type(error).__name__} {error}. `wanlat report {directory}` writes it again."
        ) from error


def _at_once(directory: Path) -> int:
    """How many drills at most ran on the machine at once while this one did."""
    whole = directory.parent.parent / "manifest.json"
    if directory.parent.name != POINTS or not beneath.is_file(whole):
        return 1
    return max((allowed["jobs"] for allowed in read_json(whole).get("jobs", ())), default=1)


def _served(document: Row, operations: str) -> dict[str, Any]:
    """Reads or writes while the fault was in force, and their p99 before it."""
    phases = {phase["name"]: phase[operations] for phase in document["phases"]}
    during = phases["during"]
    return {
        **{key: during[key] for key in ("attempted", "ok", "expired", NOT_SENT)},
        "availability": _share(during),
        "availability_by_client": {
            str(client["client"]): _share(figures["phases"]["during"])
            for client in document["clients"]
            if (figures := client[operations]) is not None
        },
        "p99_ms": during["p99_ms"],
        "p99_before_ms": phases["before"]["p99_ms"],
    }


def _share(figures: Row) -> float | None:
    due = due_of(figures)
    return figures["ok"] / due if due else None


def _judged(claims: Sequence[Row]) -> dict[str, Any]:
    """The verdict of the newest run, or of the newest in which the claim does not hold."""
    shown = min(claims, key=lambda claim: claim["verdict"] != Verdict.DOES_NOT_HOLD)
    alike = sum(claim["verdict"] == shown["verdict"] for claim in claims)
    words = {key: str(shown[key] or "") for key in ("verdict", "evidence")}
    return {**words, "p": shown.get("p"), "runs": len(claims), "runs_alike": alike}


def _bundles_at(place: Path) -> list[Path]:
    """`place` if it is a bundle, else the bundles of drills below it, in the order of names."""
    manifest = place / "manifest.json"
    if beneath.is_file(manifest) and read_json(manifest).get("kind") != "drills":
        return [place]
    drills = [
        path
        for path in bundles_below(place)
        if read_json(path / "manifest.json").get("kind") == "drill"
    ]
    if not drills:
        raise BundleError(
            f"{place} is no bundle of a drill and holds none below it. Give the directories that "
            "`wanlat drill run` named when it ended, or one that they lie in."
        )
    return drills


def _document(directory: Path) -> Row:
    """The block `drill` of a bundle's summary.json.

    From all of the bundle where there is none, where evidence is gone since, or where it was made
    before figures distinguished `expired` from `not_sent`.
    """
    if read_json(directory / "manifest.json").get("kind") != "drill":
        raise BundleError(
            f"{directory} is the bundle of a study and not of a drill. A matrix is made from what "
            "`wanlat drill run` left; leave this one out."
        )
    path = directory / "summary.json"
    is_whole = all(has_table(directory, name) for name in TABLES)
    block: Row | None = read_json(path).get("drill") if is_whole and beneath.is_file(path) else None
    return block if block and NOT_SENT in block else read_drill(directory).document
