"""The remarks as tables: verdicts, and what they rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wanlat.analysis.grid import Grid
from wanlat.analysis.names import EN_DASH, display_system
from wanlat.analysis.ratios import Verdict

if TYPE_CHECKING:
    from wanlat.analysis.resources.remarks import Part, Remarks

_MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.UNDECIDED: "?"}


def grids_of(remarks: Remarks) -> list[Grid]:
    """The verdict of each remark; then every comparison and every removal."""
    verdicts = Grid(
        title="What the documents remark",
        headers=("remark", "here", "parts that hold", "read as"),
        rows=tuple(
            (
                f"{number}. {remark.text}",
                str(remark.verdict),
                f"{remark.holding} of {len(remark.parts)}",
                remark.read_as,
            )
            for number, remark in enumerate(remarks.remarks, start=1)
        ),
        text=frozenset(("remark", "here", "read as")),
    )
    rows = [
        (str(number), _where(part), _of(part), _figures(part), _MARKS[part.verdict])
        for number, remark in enumerate(remarks.remarks, start=1)
        for part in remark.parts
    ]
    parts = Grid(
        title="What that rests on",
        headers=("remark", "at", "of", "measured", "holds"),
        rows=tuple(rows),
        text=frozenset(("remark", "at", "of", "measured", "holds")),
        notes=(
            "Ratios are of means over nodes; in brackets the least and the greatest that any node "
            "of one makes with any node of the other. ✓ holds, ✗ does not hold, ? not decided.",
        ),
    )
    return [verdicts, parts]


def _where(part: Part) -> str:
    return ", ".join(f"{name} {value}" for name, value in part.where) or EN_DASH


def _of(part: Part) -> str:
    return " / ".join(display_system(name) for name in part.of.split(" / "))


def _figures(part: Part) -> str:
    values = dict(part.values)
    if part.ratio is not None and part.low is not None and part.high is not None:
        (first, ours), (_, theirs) = part.values
        unit = "MiB" if first.endswith("MiB") else "times the mean"
        return (
            f"{ours:.3g} / {theirs:.3g} {unit} = {part.ratio:.2f} [{part.low:.2f}, {part.high:.2f}]"
        )
    freed, trash, watched_s = values["freed"], values["trash_at_most"], values["watched_s"]
    after_s = values["freed_most_after_s"]
    said = [
        f"{_percent(freed)} freed",
        f"{_percent(trash)} in the trash at most",
        f"watched {(watched_s or 0) / 60:.3g} min",
        *([] if after_s is None else [f"freed after {after_s:.0f} s"]),
    ]
    return ", ".join(said)


def _percent(share: float | None) -> str:
    return EN_DASH if share is None else f"{round(100 * share)} %"
