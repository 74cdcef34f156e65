"""Many drills on many systems, side by side: what each did during the fault and after it.

Everything comes from the bundles' summaries. Runs of the same drill, on the same topology, at the
same scale, on the same version of a system are runs of one cell: the newest complete one is shown,
all are counted and listed, and a run that lost something or broke a claim is never
hidden by a newer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from wanlat.analysis.bundle import Series
from wanlat.analysis.claims import Verdict
from wanlat.analysis.figures.drill.claims import bound_of
from wanlat.analysis.figures.drill.document import drill_document
from wanlat.analysis.figures.drill.durability import WRONG
from wanlat.analysis.figures.drill.read import read_drill
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_json

_WORST_FIRST = ("fail", "unknown", "pass")
_SHOWN = (
    *("name", "topology", "scale", "system", "version", "started", "status", "reached"),
    *("longest_outage_s", "recovered", "recovery_s", "durability", "claims"),
)


class DrillKey(NamedTuple):
    """What a row stands for."""

    name: str
    topology: str
    scale: float


@dataclass(frozen=True)
class Served:
    """Reads or writes while the fault was in force, and their p99 before it.

    `shares` has for each client how many were ok of those it sent, None where it sent none.
    """

    attempted: int
    ok: int
    not_sent: int
    shares: Mapping[str, float | None]
    p99_ms: float | None
    normal_p99_ms: float | None

    @property
    def slowdown(self) -> float | None:
        """The p99 during the fault as a multiple of that before it."""
        if self.p99_ms is None or not self.normal_p99_ms:
            return None
        return self.p99_ms / self.normal_p99_ms

    @classmethod
    def of(cls, document: Mapping[str, Any], operations: str) -> Served:
        """That of the "reads" or the "writes" of a drill's document."""
        phases = {phase["name"]: phase[operations] for phase in document["phases"]}
        during = phases["during"]
        shares = {
            str(client["client"]): _share(figures["phases"]["during"])
            for client in document["clients"]
            if (figures := client[operations]) is not None
        }
        return cls(
            attempted=int(during["attempted"]),
            ok=int(during["ok"]),
            not_sent=int(during["not_sent"]),
            shares=shares or {"": _share(during)},
            p99_ms=during["p99_ms"],
            normal_p99_ms=phases["before"]["p99_ms"],
        )

    def to_json(self) -> dict[str, Any]:
        """The entry in matrix.json."""
        sent = self.attempted - self.not_sent
        return {
            "attempted": self.attempted,
            "ok": self.ok,
            "not_sent": self.not_sent,
            "availability": self.ok / sent if sent else None,
            "availability_by_client": {name: s for name, s in self.shares.items() if name},
            "p99_ms": self.p99_ms,
            "p99_before_ms": self.normal_p99_ms,
        }


@dataclass(frozen=True)
class Run:
    """One bundle: of the block `drill` of its summary.json what a matrix shows (_SHOWN)."""

    directory: Path
    document: Mapping[str, Any]
    reads: Served
    writes: Served

    @classmethod
    def of(cls, directory: Path, document: Mapping[str, Any]) -> Run:
        """The run that `document` is of. Raises KeyError for what it lacks."""
        served = (Served.of(document, operations) for operations in ("reads", "writes"))
        return cls(directory, {key: document[key] for key in _SHOWN}, *served)

    @cached_property
    def key(self) -> DrillKey:
        """What was run."""
        name, topology = (str(self.document[key]) for key in ("name", "topology"))
        return DrillKey(name, topology, float(self.document["scale"]))

    @cached_property
    def series(self) -> Series:
        """On what."""
        return Series(str(self.document["system"]), str(self.document["version"]))

    @property
    def is_complete(self) -> bool:
        """Whether it got to its end."""
        return bool(self.document["status"] == "complete")

    @property
    def verdict(self) -> str:
        """Of durability: "pass", "fail" or "unknown"."""
        return str(self.document["durability"]["verdict"])

    @property
    def wrong(self) -> dict[str, int]:
        """How many keys have each verdict that fails a drill, where any has."""
        counts = self.document["durability"]
        return {name: n for name in WRONG if (n := counts.get(name))}

    def to_json(self) -> dict[str, Any]:
        """The run in matrix.json."""
        keys = ("longest_outage_s", "recovered", "recovery_s", "durability")
        return {
            "bundle": str(self.directory),
            **{key: self.document[key] for key in ("started", "status", "reached")},
            "during": {"reads": self.reads.to_json(), "writes": self.writes.to_json()},
            **{key: self.document[key] for key in keys},
        }


@dataclass(frozen=True)
class Cell:
    """All runs of one drill on one system: the complete ones first, the newest of them first."""

    runs: tuple[Run, ...]

    @property
    def shown(self) -> Run:
        """The newest run that is complete; the newest of all where none is."""
        return self.runs[0]

    @property
    def worst(self) -> Run:
        """The run whose durability is worst, the shown one among equals."""
        return min(
            self.runs,
            key=lambda run: (_WORST_FIRST.index(run.verdict), -sum(run.wrong.values())),
        )

    def judged(self, claim_id: str) -> Judged | None:
        """What came of a claim: in the run that is shown, or the newest in which it fails."""
        found = [
            claim
            for run in self.runs
            for claim in run.document["claims"]
            if claim["id"] == claim_id
        ]
        failed = [claim for claim in found if claim["verdict"] == Verdict.DOES_NOT_HOLD]
        if not found:
            return None
        claim = (failed or found)[0]
        alike = sum(each["verdict"] == claim["verdict"] for each in found)
        return Judged(claim["verdict"], claim["evidence"] or "", len(found), alike)


@dataclass(frozen=True)
class Judged:
    """What came of one claim on one system, in how many `runs`, and in how many it did."""

    verdict: str
    evidence: str
    runs: int
    runs_alike: int


@dataclass(frozen=True)
class ClaimRow:
    """One claim of one drill, and its verdict for each system that it was tried on."""

    drill: DrillKey
    id: str
    claim: str
    source: str
    bound: str
    verdicts: Mapping[Series, Judged]


@dataclass(frozen=True)
class DrillMatrix:
    """Drills (rows) and versions of systems (columns); a pair that was never run has no cell."""

    drills: tuple[DrillKey, ...]
    series: tuple[Series, ...]
    cells: Mapping[tuple[DrillKey, Series], Cell]

    @cached_property
    def claims(self) -> tuple[ClaimRow, ...]:
        """Every claim, drill by drill, in the order of the files of claims."""
        return tuple(row for drill in self.drills for row in self._claims_of(drill))

    def _claims_of(self, drill: DrillKey) -> Iterator[ClaimRow]:
        cells = {one: self.cells[drill, one] for one in self.series if (drill, one) in self.cells}
        of_runs = (run.document["claims"] for cell in cells.values() for run in cell.runs)
        claims = {str(claim["id"]): claim for of_run in of_runs for claim in of_run}
        for name, claim in claims.items():
            verdicts = {one: told for one, cell in cells.items() if (told := cell.judged(name))}
            words = str(claim["claim"]), str(claim.get("source") or ""), bound_of(claim)
            yield ClaimRow(drill, name, *words, verdicts)

    def to_json(self) -> dict[str, Any]:
        """The document of matrix.json."""
        return {
            "drills": [key._asdict() for key in self.drills],
            "systems": [one._asdict() for one in self.series],
            "cells": [
                {
                    **{"drill": key.name, "topology": key.topology, "scale": key.scale},
                    **one._asdict(),
                    "runs": [run.to_json() for run in self.cells[key, one].runs],
                }
                for key in self.drills
                for one in self.series
                if (key, one) in self.cells
            ],
            "claims": [
                {
                    "drill": row.drill.name,
                    **{key: getattr(row, key) for key in ("id", "claim", "source", "bound")},
                    "verdicts": [
                        one._asdict() | vars(judged) for one, judged in row.verdicts.items()
                    ],
                }
                for row in self.claims
            ],
        }


def read_matrix(places: Sequence[Path | str]) -> DrillMatrix:
    """The matrix of the bundles at `places`; one that is no bundle is searched for bundles.

    Raises BundleError if one of them is no bundle of a drill and holds none.
    """
    found = dict.fromkeys(path for place in places for path in bundles_at(Path(place)))
    return matrix_of([read_run(path) for path in found])


def matrix_of(runs: Iterable[Run]) -> DrillMatrix:
    """The matrix of `runs`; drills and systems stand in the order in which they come."""
    grouped: dict[tuple[DrillKey, Series], list[Run]] = {}
    for run in runs:
        grouped.setdefault((run.key, run.series), []).append(run)
    for many in grouped.values():
        many.sort(key=lambda run: (run.is_complete, run.document["started"] or ""), reverse=True)
    return DrillMatrix(
        drills=tuple(dict.fromkeys(key for key, _ in grouped)),
        series=tuple(dict.fromkeys(one for _, one in grouped)),
        cells={place: Cell(tuple(many)) for place, many in grouped.items()},
    )


def bundles_at(place: Path) -> list[Path]:
    """`place` if it is a bundle, else the bundles of drills below it, in the order of names."""
    if (place / "manifest.json").is_file():
        return [place]
    below = sorted(path.parent for path in place.glob("**/manifest.json"))
    drills = [path for path in below if read_json(path / "manifest.json").get("kind") == "drill"]
    if not drills:
        raise BundleError(
            f"{place} is no bundle of a drill and holds none below it. Give the directories that "
            "`wanlat drill run` named when it ended, or one that they lie in."
        )
    return drills


def read_run(directory: Path) -> Run:
    """The run in the bundle `directory`, from its summary.json, or from all of it without one.

    Raises BundleError.
    """
    if read_json(directory / "manifest.json").get("kind") != "drill":
        raise BundleError(
            f"{directory} is the bundle of a study and not of a drill. A matrix is made from what "
            "`wanlat drill run` left; leave this one out."
        )
    path = directory / "summary.json"
    block = read_json(path).get("drill") if path.is_file() else None
    try:
        return Run.of(directory, block or drill_document(read_drill(directory)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BundleError(
            f"{path} is damaged or of another version: {type(error).__name__} {error}. "
            f"`wanlat report {directory}` writes it again."
        ) from error


def _share(figures: Mapping[str, Any]) -> float | None:
    """Ok ÷ sent. As stored in older bundles, a share counts what was never sent as well."""
    sent = figures["attempted"] - figures["not_sent"]
    return figures["ok"] / sent if sent else None
