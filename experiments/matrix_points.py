"""The points of a matrix, and `points.json`: in which order they are run, and how far each is.

A point that is measured on several clusters is as many points, which differ in `replicate` alone.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path, PurePath
from typing import Any, Self

from pydantic import ConfigDict, Field

from wanlat.bundle import documents
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_document
from wanlat.bundle.write import now_iso, write_document
from wanlat.experiments.config.matrix import (
    REPLICATE,
    NoSuchPlace,
    combinations,
    told,
    value_at,
)
from wanlat.experiments.config.study import Study
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing
from wanlat.topologies.yaml_lines import checked
from wanlat.topologies.yaml_tree import Document

_LONGEST_NAME = 100
_HOW_FAR = ("status", "reason", "began", "ended", "attempts")


class Point(documents.Point):
    """One combination of values on one system: a study of its own, and how far it is."""

    model_config = ConfigDict(frozen=False)

    study: Study = Field(exclude=True, repr=False)

    @property
    def replicate(self) -> int:
        """Which of several clusters it is measured on, from 1 on."""
        return int(self.values.get(REPLICATE, 1))

    @property
    def said(self) -> str:
        """Say which point it is."""
        values = (f"{name} {_text(value)}" for name, value in self.values.items())
        return ", ".join([self.system, *values])

    def seed(self, seed: int) -> int:
        """Return its seed: its own if it has one, else one drawn from the matrix's.

        The same values on another system have the same one, so that both are asked the same. Every
        replicate has one of its own.
        """
        if self.study.seed is not None and "seed" in self.values:
            return self.study.seed
        values = json.dumps(dict(self.values), sort_keys=True)
        return random.Random(f"{seed}/points/{values}").getrandbits(32)


@dataclass
class PointEnded:
    """How an attempt at a point ended."""

    status: documents.Status
    reason: str | None = None
    is_disk_full: bool = False
    warnings: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def points_of(study: Study) -> list[Point]:
    """Return the points of a study, in the order of its grids; without a matrix one a system.

    Each as often as there are replicates. What is an option of another system is no parameter of a
    point, and two combinations that differ in nothing else are one point. Raises UserError for a
    combination that is no study.
    """
    whole = study.to_dict()
    found: dict[str, Point] = {}
    names: set[str] = set()
    replicates = range(1, study.replicates + 1)
    for each, replicate in product(combinations(study.matrix, study.systems), replicates):
        try:
            point, mistakes = checked(Document(each.study(whole)), Study)
        except NoSuchPlace as error:
            raise UserError(f"The point {each.said} of the matrix: {error}") from error
        if point is None or mistakes:
            raise UserError(f"The point {each.said} of the matrix: {told(mistakes)}")
        printed = point.to_dict()
        values = {name: value_at(printed, *name.split(".")) for name in each.values}
        if study.replicates > 1:
            values[REPLICATE] = replicate
        key = json.dumps([each.system, values], sort_keys=True)
        if key in found:
            continue
        name = "-".join(
            [each.system, *(f"{_slug(k)}-{_slug(_stem(v))}" for k, v in values.items())]
        )
        if len(name) > _LONGEST_NAME or name in names:
            name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
        names.add(name)
        found[key] = Point(
            point=len(found),
            name=name,
            system=each.system,
            values=values,
            directory=f"points/{name}",
            study=point,
        )
    if not found:
        raise UserError(
            f"study {study.name}: no grid of its matrix is for {listing(study.systems)}. "
            "Name other systems with --systems."
        )
    return [*found.values()]


def in_order(points: Sequence[Point], seed: int) -> list[Point]:
    """Return the points shuffled, so that drift of the machine cannot pass for a difference.

    In blocks: first of everything its first replicate.
    """
    drawn, shuffled = random.Random(f"{seed}/points"), list[Point]()
    for replicate in sorted({each.replicate for each in points}):
        block = [each for each in points if each.replicate == replicate]
        drawn.shuffle(block)
        shuffled += block
    for place, point in enumerate(shuffled):
        point.point = place
    return shuffled


@dataclass(frozen=True)
class Shard:
    """A part of a matrix's points: number `number`, from 1 on, of `of` parts."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "2/4". Raises UserError."""
        number, slash, of = text.partition("/")
        if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise UserError(
                f"--shard {text}: give NUMBER/OF, such as 2/4 for the second of four parts."
            )
        return cls(int(number), int(of))

    def __str__(self) -> str:
        """Return it as the command line has it."""
        return f"{self.number}/{self.of}"

    def has(self, point: Point) -> bool:
        """Whether a point, which knows its place in the order, is of this part.

        Neighbours in the order are of different parts: each gets of every block as much.
        """
        return point.point % self.of == self.number - 1


def parameters_of(points: Iterable[Point]) -> list[dict[str, Any]]:
    """Return the parameters with all values that points have, in the order of the study.

    Where values are all numbers or all sizes, `analysis` sorts them.
    """
    found: dict[str, list[Any]] = {}
    for point in points:
        for name, value in point.values.items():
            values = found.setdefault(name, [])
            if value not in values:
                values.append(value)
    return [{"name": name, "values": values} for name, values in found.items()]


class Progress:
    """How far each point is. Every change is on disk, whole, when the call returns."""

    def __init__(self, directory: Path, points: Sequence[Point]) -> None:
        """``points`` in the order in which they are run."""
        self.points = points
        self._directory = directory

    def read(self) -> None:
        """Take over what the file says, where there is one. Raises UserError."""
        try:
            found = read_document(self._directory, documents.Points)
        except BundleError as error:
            raise UserError(str(error)) from error
        if found is None:
            return
        rows = {row.name: row for row in found.points}
        if rows.keys() != {point.name for point in self.points}:
            raise UserError(
                f"{self._directory} has other points than its study. Begin a new bundle."
            )
        for point in self.points:
            for key in _HOW_FAR:
                setattr(point, key, getattr(rows[point.name], key))

    def begins(self, point: Point) -> None:
        """Note that an attempt at a point begins."""
        point.status, point.reason, point.attempts = "running", None, point.attempts + 1
        point.began, point.ended = now_iso(), None
        self.write()

    def ends(self, point: Point, status: documents.Status, reason: str | None = None) -> None:
        """Note how an attempt ended."""
        point.status, point.reason, point.ended = status, reason, now_iso()
        self.write()

    def left(self) -> list[Point]:
        """Return what is not complete, in the order it is run."""
        return [each for each in self.points if each.status != "complete"]

    def write(self) -> None:
        """Write the file."""
        parameters = [documents.Parameter(**each) for each in parameters_of(self.points)]
        document = documents.Points(parameters=parameters, points=self.points)
        write_document(self._directory, document)


def _stem(value: Any) -> str:
    text = _text(value)
    return PurePath(text).stem if text.endswith((".yaml", ".yml")) else text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.") or "none"
