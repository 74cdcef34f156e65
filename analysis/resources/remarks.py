"""What the documents remark on resources, measured: holds, does not hold, not decided.

"MinIO takes more memory", "Bob's network comes in spikes", "Bob does not free its disk after a
removal", "MinIO frees it, through its trash". The first two compare the two systems at the same
point; the others are of studies of disk space that is given back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.ratios import Verdict
from wanlat.analysis.reclaim.block import reclaimed_in
from wanlat.analysis.reclaim.model import FREED_ALL, FREED_NOTHING, Reclaimed
from wanlat.analysis.resources.block import block_of
from wanlat.analysis.resources.model import Resources, Subject, digits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.grid import Grid
    from wanlat.analysis.sweep import Sweep

BOB = "bob"
MINIO = ("minio", "minio-nginx")
_LEAST_WATCHED_S = 60.0
_MOSTLY = 0.5
"""Of what removed objects took: so much in the trash at once is through the trash."""

Where = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Part:
    """One comparison, or one removal. `values` are what the verdict rests on, by their names.

    `low` and `high` are the least and the greatest that `ratio` could be with other nodes of the
    two clusters; None of a removal.
    """

    where: Where
    of: str
    values: tuple[tuple[str, float | None], ...]
    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            **({"values": dict(self.where)} if self.where else {}),
            "of": self.of,
            **{name: digits(value) for name, value in self.values},
            "ratio": digits(self.ratio),
            "ratio_over_nodes": None if self.low is None else [digits(self.low), digits(self.high)],
            "verdict": str(self.verdict),
        }


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

    @property
    def holding(self) -> int:
        """How many parts hold."""
        return sum(part.verdict is Verdict.HOLDS for part in self.parts)

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
        """The verdicts, and what they rest on."""
        from wanlat.analysis.resources.remarks_table import grids_of

        return grids_of(self)

    def charts(self) -> Mapping[str, Figure]:
        """None: the charts of resources and of disk space show it."""
        return {}


def remarks_of(sweep: Sweep) -> Remarks | None:
    """The remarks as far as `sweep` has data for them; None where it has for none."""
    swept = [parameter.name for parameter in sweep.parameters if sweep.varies(parameter.name)]
    used: list[tuple[Where, Resources]] = []
    removed: list[Reclaimed] = []
    for point in sweep.complete:
        bundle = point.bundle
        if bundle is None:
            continue
        where = tuple((name, str(point.value(name))) for name in swept)
        used += [(where, each) for each in _used(bundle)]
        removed += reclaimed_in(bundle, where)
    return _made(used, removed)


def remarks_of_bundle(bundle: Bundle) -> Remarks | None:
    """The same of a single run, of several systems or of one that removed objects."""
    return _made([((), each) for each in _used(bundle)], reclaimed_in(bundle))


def _used(bundle: Bundle) -> tuple[Resources, ...]:
    block = block_of(bundle)
    return () if block is None else block.systems


def _made(used: Sequence[tuple[Where, Resources]], removed: Sequence[Reclaimed]) -> Remarks | None:
    found = (
        Remark(
            "memory",
            "MinIO takes more memory than Bob",
            "resident memory of a node while it is asked, MinIO's over Bob's; holds where every "
            "node of MinIO takes more than every node of Bob",
            tuple(_compared(used, _memory, "MiB", bob_over=False)),
        ),
        Remark(
            "network-spikes",
            "Bob's network comes in spikes",
            "the greatest second of a node's traffic over its mean, Bob's over MinIO's; holds "
            "where it is more at every node of Bob",
            tuple(_compared(used, _peak, "peak", bob_over=True)),
        ),
        Remark(
            "bob-keeps-disk",
            "Bob does not free disk space after a removal",
            f"at the end of watching at most {FREED_NOTHING:.0%} of what the removed objects took "
            "was given back",
            tuple(_kept(each) for each in removed if each.series.system == BOB),
        ),
        Remark(
            "minio-trash",
            "MinIO frees disk space through its trash",
            f"at least {_MOSTLY:.0%} of what the removed objects took lay in its trash at once, "
            f"and {FREED_ALL:.0%} was given back at the end of watching",
            tuple(_through_trash(each) for each in removed if each.series.system in MINIO),
        ),
    )
    made = tuple(remark for remark in found if remark.parts)
    return Remarks(made) if made else None


def _memory(node: Subject) -> float | None:
    if node.asked is None or node.asked.rss_median is None:
        return None
    return node.asked.rss_median / 2**20


def _peak(node: Subject) -> float | None:
    return None if node.asked is None else node.asked.peak_network


def _compared(
    used: Sequence[tuple[Where, Resources]],
    figure_of: Callable[[Subject], float | None],
    unit: str,
    *,
    bob_over: bool,
) -> Iterable[Part]:
    """Every point of MinIO's against the same point of Bob's."""
    bobs = {where: each for where, each in used if each.series.system == BOB}
    for where, minio in used:
        if minio.series.system not in MINIO or where not in bobs:
            continue
        ours = _figures(bobs[where] if bob_over else minio, figure_of)
        theirs = _figures(minio if bob_over else bobs[where], figure_of)
        if not ours or not theirs or min(theirs) <= 0:
            continue
        first, second = (BOB, minio.series.system) if bob_over else (minio.series.system, BOB)
        low, high = min(ours) / max(theirs), max(ours) / min(theirs)
        yield Part(
            where=where,
            of=f"{first} / {second}",
            values=((f"{first}_{unit}", _mean(ours)), (f"{second}_{unit}", _mean(theirs))),
            ratio=_mean(ours) / _mean(theirs),
            low=low,
            high=high,
            verdict=Verdict.HOLDS if low > 1 else Verdict.FAILS if high < 1 else Verdict.UNDECIDED,
        )


def _figures(resources: Resources, figure_of: Callable[[Subject], float | None]) -> list[float]:
    found = (figure_of(node) for node in resources.nodes)
    return [value for value in found if value is not None]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _kept(each: Reclaimed) -> Part:
    freed = each.freed
    if freed is None or each.watched_s < _LEAST_WATCHED_S:
        verdict = Verdict.UNDECIDED
    else:
        verdict = Verdict.HOLDS if freed <= FREED_NOTHING else Verdict.FAILS
    return Part(each.where, BOB, _of_removal(each), None, None, None, verdict)


def _through_trash(each: Reclaimed) -> Part:
    freed, trash = each.freed, each.trash_share()
    if freed is None or each.watched_s < _LEAST_WATCHED_S:
        verdict = Verdict.UNDECIDED
    elif trash < _MOSTLY:
        verdict = Verdict.FAILS
    elif freed >= FREED_ALL:
        verdict = Verdict.HOLDS
    else:  # it may yet come
        verdict = Verdict.UNDECIDED
    return Part(each.where, each.series.system, _of_removal(each), None, None, None, verdict)


def _of_removal(each: Reclaimed) -> tuple[tuple[str, float | None], ...]:
    return (
        ("freed", each.freed),
        ("trash_at_most", each.trash_share()),
        ("watched_s", each.watched_s),
        ("freed_most_after_s", each.freed_after_s(FREED_ALL)),
    )
