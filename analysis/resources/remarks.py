"""What the documents remark on resources, measured: holds, does not hold, not decided.

"MinIO takes more memory", "Bob does not free its disk after a removal", "MinIO frees it, through
its trash". The first compares the two systems at the same point; the others are of studies of disk
space that is given back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.figures.reclaim import FREED_ALL, FREED_NOTHING, SpaceOverTime, reclaim
from wanlat.analysis.grid import Grid
from wanlat.analysis.names import EN_DASH, display_system
from wanlat.analysis.ratios import Verdict
from wanlat.analysis.resources.block import SystemResources, resources_of
from wanlat.analysis.resources.tables import MIB
from wanlat.analysis.resources.usage import rounded, to_json
from wanlat.analysis.resources.windows import LOADED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.sweep import Sweep

BOB = "bob"
MINIO = ("minio", "minio-nginx")
_LEAST_WATCHED_S = 60.0
_MOSTLY = 0.5
"""Of what removed objects took: so much in the trash at once is through the trash."""
_MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.UNDECIDED: "?"}

Where = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Part:
    """One comparison, or one removal: what the verdict rests on, by its names and in words."""

    where: Where
    of: str
    values: Mapping[str, Any]
    measured: str
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        values = {"values": dict(self.where)} if self.where else {}
        return {**values, "of": self.of, **self.values, "verdict": str(self.verdict)}


@dataclass(frozen=True)
class Remark:
    """One sentence of the documents, as it was read here."""

    key: str
    text: str
    read_as: str
    parts: tuple[Part, ...]

    @property
    def verdict(self) -> Verdict:
        """Does not hold where one part does not; holds where all do."""
        verdicts = {part.verdict for part in self.parts}
        if Verdict.FAILS in verdicts:
            return Verdict.FAILS
        return Verdict.HOLDS if verdicts == {Verdict.HOLDS} else Verdict.UNDECIDED

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "remark": self.key,
            "text": self.text,
            "read_as": self.read_as,
            "verdict": str(self.verdict),
            "parts": [part.to_json() for part in self.parts],
        }


@dataclass(frozen=True)
class Remarks:
    """Those that the run has data for; a block of its report (`wanlat.analysis.blocks`)."""

    remarks: tuple[Remark, ...]

    def to_json(self) -> list[dict[str, Any]]:
        """The entry of summary.json."""
        return [remark.to_json() for remark in self.remarks]

    def grids(self) -> Sequence[Grid]:
        """The verdict of each remark; then every comparison and every removal."""
        numbered = list(enumerate(self.remarks, start=1))
        verdicts = Grid(
            title="What the documents remark",
            headers=("remark", "here", "parts that hold", "read as"),
            rows=tuple(
                (f"{n}. {each.text}", str(each.verdict), _holding(each), each.read_as)
                for n, each in numbered
            ),
            text=frozenset(("remark", "here", "read as")),
        )
        headers = ("remark", "at", "of", "measured", "holds")
        parts = Grid(
            title="What that rests on",
            headers=headers,
            rows=tuple(
                (
                    str(n),
                    ", ".join(f"{name} {value}" for name, value in part.where) or EN_DASH,
                    " / ".join(map(display_system, part.of.split(" / "))),
                    part.measured,
                    _MARKS[part.verdict],
                )
                for n, each in numbered
                for part in each.parts
            ),
            text=frozenset(headers),
            notes=(
                "Ratios are of means over nodes; in brackets the least and the greatest that any "
                "node of one makes with any node of the other. ✓ holds, ✗ does not hold, ? not "
                "decided.",
            ),
        )
        return [verdicts, parts]

    def charts(self) -> Mapping[str, Figure]:
        """None: the charts of resources and of disk space show it."""
        return {}


def remarks_of(sweep: Sweep) -> Remarks | None:
    """The remarks as far as `sweep` has data for them; None where it has for none."""
    swept = [parameter.name for parameter in sweep.parameters if sweep.varies(parameter.name)]
    used: list[tuple[Where, SystemResources]] = []
    removed: list[tuple[Where, str, SpaceOverTime]] = []
    for point in sweep.complete:
        if point.bundle is not None:
            where = tuple((name, str(point.value(name))) for name in swept)
            used += [(where, each) for each in _used(point.bundle)]
            removed += [(where, *each) for each in _removals(point.bundle)]
    return _made(used, removed)


def remarks_of_bundle(bundle: Bundle) -> Remarks | None:
    """The same of a single run, of several systems or of one that removed objects."""
    removed = [((), *each) for each in _removals(bundle)]
    return _made([((), each) for each in _used(bundle)], removed)


def _removals(bundle: Bundle) -> list[tuple[str, SpaceOverTime]]:
    """Each system of a bundle that removed objects, and what became of its space."""
    figures = reclaim(bundle)
    if figures is None:
        return []
    return [(row["system"], space) for row, space in zip(figures.rows, figures.arrays, strict=True)]


def _used(bundle: Bundle) -> tuple[SystemResources, ...]:
    block = resources_of(bundle)
    return () if block is None else block.systems


def _made(
    used: Sequence[tuple[Where, SystemResources]],
    removed: Sequence[tuple[Where, str, SpaceOverTime]],
) -> Remarks | None:
    found = (
        Remark(
            "memory",
            "MinIO takes more memory than Bob",
            "resident memory of a loaded node, MinIO's over Bob's; holds where every node of MinIO "
            "takes more than every node of Bob",
            tuple(_compared(used)),
        ),
        Remark(
            "bob-keeps-disk",
            "Bob does not free disk space after a removal",
            f"at the end of watching at most {FREED_NOTHING:.0%} of what the removed objects took "
            "was given back",
            tuple(_removal(*each) for each in removed if each[1] == BOB),
        ),
        Remark(
            "minio-trash",
            "MinIO frees disk space through its trash",
            f"at least {_MOSTLY:.0%} of what the removed objects took lay in its trash at once, "
            f"and {FREED_ALL:.0%} was given back at the end of watching",
            tuple(_removal(*each) for each in removed if each[1] in MINIO),
        ),
    )
    made = tuple(remark for remark in found if remark.parts)
    return Remarks(made) if made else None


def _compared(used: Sequence[tuple[Where, SystemResources]]) -> Iterable[Part]:
    """Memory at every point of MinIO's against the same point of Bob's."""
    bobs = {where: _memory_mib(each) for where, each in used if each.series.system == BOB}
    for where, each in used:
        if each.series.system not in MINIO or where not in bobs:
            continue
        minio, bob = _memory_mib(each), bobs[where]
        if minio.empty or bob.empty or bob.min() <= 0:
            continue
        name = each.series.system
        low, high = float(minio.min() / bob.max()), float(minio.max() / bob.min())
        ours, theirs = float(minio.mean()), float(bob.mean())
        yield Part(
            where,
            f"{name} / {BOB}",
            to_json({f"{name}_MiB": ours, f"{BOB}_MiB": theirs, "ratio": ours / theirs})
            | {"ratio_over_nodes": [rounded(low), rounded(high)]},
            f"{ours:.3g} / {theirs:.3g} MiB = {ours / theirs:.2f} [{low:.2f}, {high:.2f}]",
            Verdict.HOLDS if low > 1 else Verdict.FAILS if high < 1 else Verdict.UNDECIDED,
        )


def _memory_mib(resources: SystemResources) -> pd.Series[float]:
    return resources.nodes[LOADED, "rss_bytes_median"].dropna() / MIB


def _removal(where: Where, system: str, space: SpaceOverTime) -> Part:
    """Whether Bob kept the space of removed objects; whether MinIO gave it back."""
    freed, trash = space.freed(space.watched_s), space.trash()[0] or 0.0
    if freed is None or space.watched_s < _LEAST_WATCHED_S:
        verdict = Verdict.UNDECIDED
    elif system == BOB:
        verdict = Verdict.HOLDS if freed <= FREED_NOTHING else Verdict.FAILS
    elif trash < _MOSTLY:
        verdict = Verdict.FAILS
    else:  # what is not given back yet may yet be
        verdict = Verdict.HOLDS if freed >= FREED_ALL else Verdict.UNDECIDED
    after_s = space.freed_after_s(FREED_ALL)
    said = [
        f"{EN_DASH if freed is None else f'{round(100 * freed)} %'} freed",
        f"{round(100 * trash)} % in the trash at most",
        f"watched {space.watched_s / 60:.3g} min",
        *([] if after_s is None else [f"freed after {after_s:.0f} s"]),
    ]
    values = {
        "freed": freed,
        "trash_at_most": trash,
        "watched_s": space.watched_s,
        "freed_most_after_s": after_s,
    }
    return Part(where, system, to_json(values), ", ".join(said), verdict)


def _holding(remark: Remark) -> str:
    holding = sum(part.verdict is Verdict.HOLDS for part in remark.parts)
    return f"{holding} of {len(remark.parts)}"
