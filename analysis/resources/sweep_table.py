"""The table of resources over a sweep: a row a point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wanlat.analysis.grid import Grid
from wanlat.analysis.names import EN_DASH, row_labels
from wanlat.analysis.resources.model import ASKED, REST, Resources
from wanlat.analysis.resources.table import (
    MIB,
    REQUEST_HEADERS,
    STORED_HEADERS,
    number,
    request_cells,
    sampling_notes,
    stored_cells,
)

if TYPE_CHECKING:
    from wanlat.analysis.resources.sweep_block import ResourcesOfSweep

_GROSS = "Where no rest was looked at, what the cluster does by itself is in it."
_MEMORY = ("MiB at rest", "MiB asked")


def grids_of(block: ResourcesOfSweep) -> list[Grid]:
    """What nodes and requests cost at each point; and stored bytes, where any were."""
    labels = row_labels(list(dict.fromkeys(each.resources.series for each in block.points)))
    swept = tuple(name for name, _ in block.points[0].where)

    def row(number: int) -> tuple[str, ...]:
        each = block.points[number]
        at = (EN_DASH if value is None else str(value) for _, value in each.where)
        return (*at, labels[each.resources.series])

    asked = [
        (*row(n), *_memory(each.resources), *_request(each.resources))
        for n, each in enumerate(block.points)
    ]
    stored = [
        (*row(n), *stored_cells(each.resources))
        for n, each in enumerate(block.points)
        if each.resources.stored is not None
    ]
    gross = any(not each.resources.background_known for each in block.points)
    words = frozenset((*swept, "system", "by its options"))
    headers = (*swept, "system")
    notes = (
        "Memory: resident, of a node, median of looks, mean over nodes. Of a request: the mean "
        "over all that were sent, whatever endpoint; CPU of all nodes together.",
        *([_GROSS] if gross else []),
        *sampling_notes(block.sampling, "At the dearest point sampled"),
    )
    grids = [
        Grid(
            title="What a node pays, and what a request costs",
            headers=(*headers, *_MEMORY, "requests", *(_bare(h) for h in REQUEST_HEADERS)),
            rows=tuple(asked),
            text=words,
            notes=notes,
        )
    ]
    if stored:
        grids.append(
            Grid(
                title="What a stored byte costs",
                headers=(*headers, *STORED_HEADERS),
                rows=tuple(stored),
                text=words,
            )
        )
    return grids


def _memory(resources: Resources) -> tuple[str, str]:
    return number(resources.memory(REST), MIB), number(resources.memory(ASKED), MIB)


def _request(resources: Resources) -> list[str]:
    of_all = resources.of_all
    return request_cells(of_all) if of_all else [EN_DASH] * (1 + len(REQUEST_HEADERS))


def _bare(header: str) -> str:
    return header.removesuffix(" [95 %]")
