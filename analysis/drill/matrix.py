"""Many drills on many systems, side by side: what each did during the fault and after it.

Everything comes from the bundles' summaries. Runs of the same drill, on the same topology, at the
same scale, on the same version of a system are runs of one cell: the newest complete one is shown,
all are counted and listed, and a run that lost something or broke a claim is never
hidden by a newer one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from wanlat.analysis.bundle import Series
from wanlat.analysis.drill.claims import DOES_NOT_HOLD
from wanlat.analysis.drill.wording import BAD, bound_of
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_json

_SYSTEM_ORDER = ("garage", "minio", "bob", "quorum")
_WORST_FIRST = ("fail", "unknown", "pass")
_DURING, _BEFORE = "during", "before"


class DrillKey(NamedTuple):
    """What a row stands for."""

    name: str
    topology: str
    scale: float


@dataclass(frozen=True)
class Share:
    """Which share of the requests of one client was ok; None where none was due."""

    client: str
    availability: float | None


@dataclass(frozen=True)
class Operation:
    """Reads or writes while the fault was in force, and their p99 before it."""

    attempted: int
    ok: int
    shares: tuple[Share, ...]
    p99_ms: float | None
    normal_p99_ms: float | None

    @property
    def availability(self) -> float | None:
        """Over all clients."""
        return self.ok / self.attempted if self.attempted else None

    @property
    def slowdown(self) -> float | None:
        """The p99 during the fault as a multiple of that before it."""
        if self.p99_ms is None or not self.normal_p99_ms:
            return None
        return self.p99_ms / self.normal_p99_ms


@dataclass(frozen=True)
class Run:
    """One bundle: the block `drill` of its summary.json, as far as a matrix shows it."""

    directory: Path
    key: DrillKey
    series: Series
    started: str
    status: str
    reached: str | None
    reads: Operation
    writes: Operation
    longest_outage_s: float | None
    recovered: bool | None
    recovery_s: float | None
    durability: Mapping[str, Any]
    claims: tuple[Mapping[str, Any], ...]

    @property
    def is_complete(self) -> bool:
        """Whether it got to its end."""
        return self.status == "complete"

    @property
    def verdict(self) -> str:
        """Of durability: "pass", "fail" or "unknown"."""
        return str(self.durability.get("verdict", "unknown"))

    def to_json(self) -> dict[str, Any]:
        """The run in matrix.json."""
        return {
            "bundle": str(self.directory),
            "started": self.started,
            "status": self.status,
            "reached": self.reached,
            "during": {"reads": _to_json(self.reads), "writes": _to_json(self.writes)},
            "longest_outage_s": self.longest_outage_s,
            "recovered": self.recovered,
            "recovery_s": self.recovery_s,
            "durability": dict(self.durability),
        }


@dataclass(frozen=True)
class Cell:
    """All runs of one drill on one system, the one that is shown first."""

    runs: tuple[Run, ...]

    @property
    def shown(self) -> Run:
        """The newest run that is complete; the newest of all where none is."""
        return self.runs[0]

    @property
    def worst(self) -> Run:
        """The run whose durability is worst, the shown one among equals."""
        return min(self.runs, key=lambda run: (_WORST_FIRST.index(run.verdict), -_wrong(run)))


@dataclass(frozen=True)
class Verdict:
    """What came of one claim on one system, and in how many runs it did.

    Of the run that is shown, or of the newest in which it does not hold.
    """

    series: Series
    verdict: str
    evidence: str
    runs: int
    alike: int


@dataclass(frozen=True)
class ClaimRow:
    """One claim of one drill, and its verdict for each system that it was tried on."""

    drill: DrillKey
    id: str
    claim: str
    source: str
    bound: str
    verdicts: Mapping[Series, Verdict]


@dataclass(frozen=True)
class Matrix:
    """Drills (rows) and versions of systems (columns); a pair that was never run has no cell."""

    drills: tuple[DrillKey, ...]
    series: tuple[Series, ...]
    cells: Mapping[tuple[DrillKey, Series], Cell]

    @cached_property
    def claims(self) -> tuple[ClaimRow, ...]:
        """Every claim, drill by drill, in the order of the files of claims."""
        return tuple(row for drill in self.drills for row in self._claims_of(drill))

    def _claims_of(self, drill: DrillKey) -> Iterator[ClaimRow]:
        verdicts: dict[str, dict[Series, Verdict]] = {}
        words: dict[str, tuple[str, str, str]] = {}
        for one in self.series:
            cell = self.cells.get((drill, one))
            for run in cell.runs if cell else ():
                for claim in run.claims:
                    told = verdicts.setdefault(str(claim["id"]), {})
                    source = str(claim.get("source") or "")
                    words[str(claim["id"])] = str(claim["claim"]), source, bound_of(claim)
                    # The shown run comes first; one in which it does not hold, before it.
                    failed = claim["verdict"] == DOES_NOT_HOLD
                    if cell and (one not in told or failed > (told[one].verdict == DOES_NOT_HOLD)):
                        told[one] = _verdict(cell, one, claim)
        for name, found in verdicts.items():
            yield ClaimRow(drill, name, *words[name], found)

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
                    "id": row.id,
                    "claim": row.claim,
                    "source": row.source,
                    "bound": row.bound,
                    "verdicts": [
                        {
                            **verdict.series._asdict(),
                            "verdict": verdict.verdict,
                            "evidence": verdict.evidence,
                            "runs": verdict.runs,
                            "runs_alike": verdict.alike,
                        }
                        for verdict in row.verdicts.values()
                    ],
                }
                for row in self.claims
            ],
        }

    def to_text(self) -> str:
        """The same as text."""
        document = self.to_json()
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_matrix(places: Sequence[Path | str]) -> Matrix:
    """The matrix of the bundles at `places`; one that is no bundle is searched for bundles.

    Raises BundleError if one of them is no bundle of a drill and holds none.
    """
    found = dict.fromkeys(path for place in places for path in bundles_at(Path(place)))
    return matrix_of([read_run(path) for path in found])


def matrix_of(runs: Iterable[Run]) -> Matrix:
    """The matrix of `runs`; drills stand in the order in which they come."""
    grouped: dict[tuple[DrillKey, Series], list[Run]] = {}
    for run in runs:
        grouped.setdefault((run.key, run.series), []).append(run)
    cells = {
        place: Cell(
            # Newest first, then, since sorting is stable, the complete ones before the others.
            tuple(
                sorted(
                    sorted(many, key=lambda run: run.started, reverse=True),
                    key=lambda run: not run.is_complete,
                )
            )
        )
        for place, many in grouped.items()
    }
    return Matrix(
        drills=tuple(dict.fromkeys(key for key, _ in grouped)),
        series=tuple(sorted({one for _, one in grouped}, key=_rank)),
        cells=cells,
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
    manifest = read_json(directory / "manifest.json")
    if manifest.get("kind") != "drill":
        raise BundleError(
            f"{directory} is the bundle of a study and not of a drill. A matrix is made from what "
            "`wanlat drill run` left; leave this one out."
        )
    block = _block(directory)
    try:
        return _parse(directory, block)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BundleError(
            f"{directory / 'summary.json'} is damaged or of another version: "
            f"{type(error).__name__} {error}. `wanlat report {directory}` writes it again."
        ) from error


def _block(directory: Path) -> Mapping[str, Any]:
    """The block `drill` of the summary; made now where none was written yet."""
    path = directory / "summary.json"
    if path.is_file():
        block = read_json(path).get("drill")
        if isinstance(block, Mapping):
            return block
    from wanlat.analysis.drill.block import drill_block
    from wanlat.analysis.drill.read import read_drill

    return drill_block(read_drill(directory))


def _parse(directory: Path, block: Mapping[str, Any]) -> Run:
    return Run(
        directory=directory,
        key=DrillKey(str(block["name"]), str(block["topology"]), float(block["scale"])),
        series=Series(str(block["system"]), str(block["version"])),
        started=str(block["started"] or ""),
        status=str(block["status"]),
        reached=block["reached"],
        reads=_operation(block, "read"),
        writes=_operation(block, "write"),
        longest_outage_s=block["longest_outage_s"],
        recovered=block["recovered"],
        recovery_s=block["recovery_s"],
        durability=dict(block["durability"]),
        claims=tuple(block["claims"]),
    )


def _operation(block: Mapping[str, Any], operation: str) -> Operation:
    phases = {phase["name"]: phase[f"{operation}s"] for phase in block["phases"]}
    during: Mapping[str, Any] = phases.get(_DURING) or {}
    attempted, ok = int(during.get("attempted", 0)), int(during.get("ok", 0))
    shares = [
        Share(str(client["client"]), _share(of_it["phases"].get(_DURING) or {}))
        for client in block["clients"]
        if (of_it := client[f"{operation}s"]) is not None
    ]
    return Operation(
        attempted=attempted,
        ok=ok,
        shares=tuple(shares) or (Share("", ok / attempted if attempted else None),),
        p99_ms=during.get("p99_ms"),
        normal_p99_ms=(phases.get(_BEFORE) or {}).get("p99_ms"),
    )


def _share(figures: Mapping[str, Any]) -> float | None:
    attempted = figures.get("attempted") or 0
    return int(figures["ok"]) / int(attempted) if attempted else None


def _verdict(cell: Cell, one: Series, claim: Mapping[str, Any]) -> Verdict:
    verdict = str(claim["verdict"])
    others = [
        str(other["verdict"])
        for run in cell.runs
        for other in run.claims
        if other.get("id") == claim.get("id")
    ]
    return Verdict(
        one, verdict, str(claim.get("evidence") or ""), len(others), others.count(verdict)
    )


def _to_json(operation: Operation) -> dict[str, Any]:
    return {
        "attempted": operation.attempted,
        "ok": operation.ok,
        "availability": operation.availability,
        "availability_by_client": {
            share.client: share.availability for share in operation.shares if share.client
        },
        "p99_ms": operation.p99_ms,
        "p99_before_ms": operation.normal_p99_ms,
    }


def _wrong(run: Run) -> int:
    return sum(int(run.durability.get(verdict) or 0) for verdict in BAD)


def _rank(one: Series) -> tuple[int, Series]:
    known = _SYSTEM_ORDER.index(one.system) if one.system in _SYSTEM_ORDER else len(_SYSTEM_ORDER)
    return known, one
