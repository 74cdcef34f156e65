"""The loads of a sweep: deployments side by side, and beside the published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis import ratios
from wanlat.analysis.load.model import Estimate, Load, Operation
from wanlat.analysis.load.of_bundle import loads_of
from wanlat.analysis.load.published import (
    BASE,
    DEPLOYMENTS,
    OPERATIONS,
    READ,
    WRITE,
    deployment_named,
    published_of,
)
from wanlat.analysis.ratios import Ratio
from wanlat.bundle.errors import BundleError

if TYPE_CHECKING:
    from wanlat.analysis.sweep import Point, Sweep


@dataclass(frozen=True)
class Deployment:
    """One point of the sweep under load. `where` has the values of what is swept, as text.

    `published` is what the published table calls such a deployment; None where it has none.
    """

    point: str
    where: Mapping[str, str]
    nodes: int | None
    drives: int | None
    published: str | None
    load: Load

    @property
    def name(self) -> str:
        """For charts: "4 nodes of 4 drives"."""
        nodes = f"{self.nodes} node{'' if self.nodes == 1 else 's'}" if self.nodes else ""
        drives = f"{self.drives} drive{'' if self.drives == 1 else 's'}" if self.drives else ""
        return " of ".join(part for part in (nodes, drives) if part)

    def find(self, operation: str) -> Operation | None:
        """Its reads ("read") or writes; None where it had none."""
        return next(
            (
                each
                for each in self.load.operations
                if OPERATIONS.get(each.operation) == operation
                and each.figures.ok
                and each.figures.mean_ms is not None
            ),
            None,
        )


@dataclass(frozen=True)
class Against:
    """A deployment divided by one node of one drive of the same source, ours and theirs.

    `ours` is None where we have no such pair, `theirs` where the published table has none.
    `what` is "read" or "write", and `of` the figure: its rate or its mean latency. Where `of` is
    "write / read, mean ms" it is within one deployment.
    """

    system: str
    deployment: str
    what: str
    of: str
    ours: Ratio | None
    theirs: float | None

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "system": self.system,
            "deployment": self.deployment,
            "operation": self.what,
            "of": self.of,
            "ours": None if self.ours is None else self.ours.to_json(),
            "published": None if self.theirs is None else round(self.theirs, 6),
        }


RATE, MEAN, WITHIN = "operations/s", "mean ms", "mean ms, write / read"


def deployments_of(sweep: Sweep) -> tuple[Deployment, ...]:
    """Every complete point that was run under load, in the order of the sweep.

    A point whose records are damaged is left out: its own report says why.
    """
    from wanlat.analysis.sweep_table import written

    names = [p.name for p in sweep.parameters if len(p.values) > 1]
    found = []
    for point in sweep.complete:
        if point.bundle is None or not point.bundle.is_load:
            continue
        try:
            loads = loads_of(point.bundle)
        except BundleError:
            continue
        where = {name: written(point.value(name)) for name in names}
        nodes, drives = _whole(point.value("nodes")), drives_of(point)
        found += [
            Deployment(
                point=point.name,
                where=where,
                nodes=nodes,
                drives=drives,
                published=deployment_named(load.series.system, nodes, drives),
                load=load,
            )
            for load in loads
        ]
    return tuple(found)


def drives_of(point: Point) -> int | None:
    """Drives of each node, as the point's options have it; None where they do not say."""
    found = _whole(point.value("drives"))
    if found is not None or point.bundle is None:
        return found
    entries = point.bundle.manifest.get("systems")
    for entry in entries if isinstance(entries, list) else ():
        options = entry.get("options") if isinstance(entry, Mapping) else None
        if isinstance(options, Mapping) and entry.get("name") == point.system:
            return _whole(options.get("drives"))
    return None


def against_published(deployments: Sequence[Deployment]) -> list[Against]:
    """Ours and theirs: each deployment of the published table by its one of one drive, and how
    writes compare with reads in each. Deployments of ours that it lacks stand there alone.
    """
    mine = {each.published: each for each in deployments if each.published is not None}
    base = mine.get(BASE)
    found = []
    for name in DEPLOYMENTS:
        one = mine.get(name)
        system = DEPLOYMENTS[name][0]
        if name != BASE:
            for what in (READ, WRITE):
                found += _pairs(system, name, what, one, base)
        found.append(_within(system, name, one, name))
    for one in deployments:
        if one.published is None:
            system = one.load.series.system
            for what in (READ, WRITE):
                found += _pairs(system, _plain(one), what, one, base)
            found.append(_within(system, _plain(one), one, None))
    return [each for each in found if each.ours is not None or each.theirs is not None]


def _pairs(
    system: str, name: str, what: str, one: Deployment | None, base: Deployment | None
) -> list[Against]:
    over, under = (each.find(what) if each else None for each in (one, base))
    their_over, their_under = published_of(name, what), published_of(BASE, what)
    known = their_over is not None and their_under is not None
    rate = mean = None
    if over is not None and under is not None:
        rate = _ratio(over.figures.per_s, under.figures.per_s)
        mean = _ratio(over.figures.mean_ms, under.figures.mean_ms)
    their_rate = their_over.per_s / their_under.per_s if known else None  # type: ignore[union-attr]
    their_mean = their_over.mean_ms / their_under.mean_ms if known else None  # type: ignore[union-attr]
    return [
        Against(system, name, what, RATE, rate, their_rate),
        Against(system, name, what, MEAN, mean, their_mean),
    ]


def _within(system: str, name: str, one: Deployment | None, published: str | None) -> Against:
    """How much longer a write takes than a read."""
    ours = theirs = None
    found = one.load.write_over_read if one else None
    if found is not None:
        ours = Ratio(found.value, found.ci95)
    if published is not None:
        their_write, their_read = (published_of(published, what) for what in (WRITE, READ))
        if their_write is not None and their_read is not None:
            theirs = their_write.mean_ms / their_read.mean_ms
    return Against(system, name, "write / read", WITHIN, ours, theirs)


def _ratio(over: Estimate | None, under: Estimate | None) -> Ratio | None:
    if over is None or under is None or min(over.value, under.value) <= 0:
        return None
    return ratios.of_estimates((over.value, over.ci95), (under.value, under.ci95))


def _plain(one: Deployment) -> str:
    return one.name.replace(" ", "-") or one.point


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
