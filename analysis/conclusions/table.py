"""The conclusions as tables: the verdicts of each source side by side, and what is behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wanlat.analysis.conclusions.four import MINIO_TO_BOB
from wanlat.analysis.conclusions.model import (
    BEHIND_NGINX,
    DIRECT,
    LIMIT_BYTES,
    MUCH,
    PUBLISHED,
    Clause,
    Conclusion,
    Conclusions,
    Part,
    variant,
)
from wanlat.analysis.grid import Grid
from wanlat.analysis.names import EN_DASH
from wanlat.analysis.ratios import Estimate, Ratio, Verdict, of_estimates
from wanlat.analysis.sizes_table import format_size

_HEADERS = {PUBLISHED: PUBLISHED, BEHIND_NGINX: "ours, MinIO+nginx", DIRECT: "ours, MinIO direct"}
_MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.UNDECIDED: "?"}
_ALL = "all"


def grids_of(conclusions: Conclusions) -> list[Grid]:
    """The verdicts of every conclusion by nodes, what each rests on, the ratios of both studies.

    Then the ratio of every part, which is long.
    """
    compared = _compared(conclusions)
    return [
        _verdicts(conclusions),
        _deciding(conclusions),
        *([compared] if compared.rows else []),
        _parts(conclusions),
    ]


def _verdicts(conclusions: Conclusions) -> Grid:
    sources = list(conclusions.sources)
    rows, sections = [], []
    for number, first in enumerate(conclusions.sources[sources[0]]):
        same = [of[number] for of in conclusions.sources.values()]
        nodes = sorted({n for each in same for n in each.nodes})
        for each in (None, *nodes):
            of_all = _ALL if each is None else str(each)
            text = f"{number + 1}. {first.text}" if each is None else EN_DASH
            rows.append((text, of_all, *(_verdict(c, each) for c in same)))
        sections.append(len(rows) - 1)
    return Grid(
        title="What the documents conclude",
        headers=("conclusion", "nodes", *(_HEADERS[name] for name in sources)),
        rows=tuple(rows),
        text=frozenset(("conclusion", *(_HEADERS[name] for name in sources))),
        sections=frozenset(sections[:-1]),
        notes=(
            "In brackets: how many comparisons hold, of how many. A conclusion holds where all do, "
            "and does not where the 95 % interval of one says so.",
            f"Read as: mean and median differ much from {100 * MUCH:.0f} % on; an object of 4 MiB "
            f"({LIMIT_BYTES} bytes) makes a message of more than that.",
            "Published: from stored estimates of another machine and of old versions; one key, Bob "
            "asked directly, MinIO behind nginx. Ratios are compared, and no time.",
        ),
    )


def _verdict(conclusion: Conclusion, nodes: int | None) -> str:
    holding, parts = conclusion.counts(nodes)
    if not parts:
        return "not measured"
    return f"{conclusion.verdict(nodes)} ({holding}/{parts})"


def _deciding(conclusions: Conclusions) -> Grid:
    """Of every clause and source the one comparison that the verdict rests on."""
    rows: list[tuple[str, ...]] = []
    sections: list[int] = []
    for number in range(len(next(iter(conclusions.sources.values())))):
        same = {name: of[number] for name, of in conclusions.sources.items()}
        for place, first in enumerate(next(iter(same.values())).clauses):
            text = f"{number + 1}. {first.text}"
            for name, conclusion in same.items():
                rows.append((text, *_decided(name, conclusion.clauses[place])))
                text = EN_DASH
        sections.append(len(rows) - 1)
    return Grid(
        title="What decides them",
        headers=(
            "clause",
            "source",
            "verdict",
            "ratio [95 %]",
            *("should be", "nodes", "operation", "size", "of"),
        ),
        rows=tuple(rows),
        text=frozenset(("clause", "source", "verdict", "should be", "operation", "of")),
        sections=frozenset(sections[:-1]),
        notes=(
            "The comparison that fails most clearly; where none fails, the one that holds least "
            "clearly. Every interval is a 95 % one of its own: of many comparisons on the brink "
            "one in twenty would be wrong.",
            "Each point is a cluster of its own, and how much two clusters of one kind differ is "
            "in no interval: sizes that hardly differ show it (4095 to 4097 KiB).",
        ),
    )


def _decided(source: str, clause: Clause) -> tuple[str, ...]:
    part = clause.deciding
    if part is None:
        return (_HEADERS[source], "not measured", EN_DASH, clause.says, *[EN_DASH] * 4)
    verdict = str(clause.verdict()) if clause.counts else f"({clause.verdict()})"
    return (
        _HEADERS[source],
        verdict,
        _with_interval(part),
        clause.says,
        str(part.at.nodes or EN_DASH),
        part.at.operation,
        format_size(part.at.object_bytes),
        variant(part.at),
    )


def _compared(conclusions: Conclusions) -> Grid:
    """MinIO's time / Bob's, wherever both the documents and we have it."""
    ours = [name for name in conclusions.sources if name != PUBLISHED]
    ratios = {name: _minio_to_bob(of) for name, of in conclusions.sources.items()}
    shared = [
        row
        for row in dict.fromkeys(row for name in ours for row in ratios[name])
        if row._replace(variant="") in ratios[PUBLISHED]
    ]
    rows = []
    for row in sorted(shared):
        theirs = ratios[PUBLISHED][row._replace(variant="")]
        first = next(ratios[name][row] for name in ours if row in ratios[name])
        rows.append(
            (
                str(row.nodes),
                row.operation,
                format_size(row.object_bytes),
                row.variant,
                _interval(theirs),
                *(_interval(ratios[name].get(row)) for name in ours),
                _interval(of_estimates(_estimate(first), _estimate(theirs))),
            )
        )
    return Grid(
        title="MinIO's time / Bob's, theirs and ours",
        headers=(
            *("nodes", "operation", "size", "of"),
            *(_HEADERS[name] for name in conclusions.sources),
            "ours / published",
        ),
        rows=tuple(rows),
        text=frozenset(("operation", "of")),
        sections=frozenset(
            n for n in range(len(rows) - 1) if sorted(shared)[n][1:3] != sorted(shared)[n + 1][1:3]
        ),
        notes=(
            "Ratios of means [95 %]. Above 1: Bob is faster. The last column is of the first of "
            "ours: above 1, Bob's lead is greater here than it was there.",
        ),
    )


def _minio_to_bob(conclusions: Sequence[Conclusion]) -> dict[_Row, Ratio]:
    return {
        _row(clause, part)._replace(clause=""): part.ratio
        for conclusion in conclusions
        for clause in conclusion.clauses
        if clause.ratio_of == MINIO_TO_BOB
        for part in clause.parts
    }


def _estimate(ratio: Ratio) -> Estimate:
    return ratio.estimate, ratio.ci95


class _Row(NamedTuple):
    """One comparison, whoever made it."""

    clause: str
    nodes: int
    operation: str
    object_bytes: int
    variant: str


def _parts(conclusions: Conclusions) -> Grid:
    sources = list(conclusions.sources)
    rows: list[tuple[str, ...]] = []
    sections: list[int] = []
    for number in range(len(conclusions.sources[sources[0]])):
        same = [of[number] for of in conclusions.sources.values()]
        for place in range(len(same[0].clauses)):
            clauses = [conclusion.clauses[place] for conclusion in same]
            rows += _rows_of(number + 1, clauses, sources)
            sections.append(len(rows) - 1)
    return Grid(
        title="The ratios behind them",
        headers=(
            "clause",
            "nodes",
            "operation",
            "size",
            "of",
            *(f"{_HEADERS[name]} [95 %]" for name in sources),
        ),
        rows=tuple(rows),
        text=frozenset(("clause", "operation", "of")),
        sections=frozenset(sections[:-1]),
        long=True,
        notes=(
            "✓ holds, ✗ does not hold, ? not decided: the interval holds the bound, or there is "
            "none (fewer than 10 requests; of mean / median fewer than 20).",
            "Ratios are of means. Where medians say the contrary, theirs stands behind a bar.",
        ),
    )


def _rows_of(
    number: int, clauses: Sequence[Clause], sources: Sequence[str]
) -> list[tuple[str, ...]]:
    """A row for each comparison that some source has, with what every source says of it.

    The published ones are of no variant, and stand beside each of ours.
    """
    first = clauses[0]
    found = [{_row(first, part): part for part in clause.parts} for clause in clauses]
    ours = dict.fromkeys(row for of in found[1:] for row in of)
    plain = {row._replace(variant="") for row in ours}
    lone = [row for row in found[0] if row not in plain]
    head = f"{number}. {first.ratio_of} {first.says}"
    rows = []
    for row in sorted((*ours, *lone)):
        cells = []
        for source, of in zip(sources, found, strict=True):
            part = of.get(row._replace(variant="") if source == PUBLISHED else row)
            cells.append(EN_DASH if part is None else _cell(part))
        rows.append(
            (
                head,
                str(row.nodes),
                row.operation,
                format_size(row.object_bytes),
                row.variant,
                *cells,
            )
        )
    return rows


def _row(clause: Clause, part: Part) -> _Row:
    at = part.at
    return _Row(clause.text, at.nodes or 0, at.operation, at.object_bytes, variant(at))


def _cell(part: Part) -> str:
    text = f"{_with_interval(part)} {_MARKS[part.verdict]}"
    medians = part.verdict_of_medians
    if part.of_medians is None or Verdict.UNDECIDED in (medians, part.verdict):
        return text
    return text if medians == part.verdict else f"{text} | {_ratio(part.of_medians.estimate)}"


def _with_interval(part: Part) -> str:
    return _interval(part.ratio)


def _interval(ratio: Ratio | None) -> str:
    if ratio is None:
        return EN_DASH
    bounds = EN_DASH if ratio.ci95 is None else ", ".join(_ratio(bound) for bound in ratio.ci95)
    return f"{_ratio(ratio.estimate)} [{bounds}]"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"
