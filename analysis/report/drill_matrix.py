"""A matrix of drills: what its tables, its chart and its files say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from pkgutil import resolve_name

from wanlat.analysis.figures.drill.matrix import (
    Cell,
    DrillMatrix,
    Judged,
    Run,
    Served,
    read_matrix,
)
from wanlat.analysis.files import replace_text
from wanlat.analysis.grid import Grid, markdown
from wanlat.analysis.names import EN_DASH, count, format_ms, row_labels, series_labels
from wanlat.analysis.report.drill import percent, seconds
from wanlat.analysis.report.section import Column

NOT_RUN = "not run"
_ENDED = {"running": "killed", "interrupted": "interrupted", "failed": "failed"}

_RUN_COLUMNS = (
    Column("reads ok during the fault", lambda row: _shares(row["cell"].shown.reads), words=True),
    Column("writes ok", lambda row: _shares(row["cell"].shown.writes), words=True),
    Column("never sent", "{not_sent}"),
    Column("p99 of reads, ms (before)", lambda row: _p99(row["cell"].shown.reads)),
    Column("p99 of writes, ms (before)", lambda row: _p99(row["cell"].shown.writes)),
    Column("longest outage", "{longest}"),
    Column("back to normal", lambda row: recovery_text(row["cell"].shown)),
    Column("acknowledged", lambda row: str(row["durability"]["acknowledged"])),
    Column(
        "durability", lambda row: f"{row['cell'].worst.verdict}: {durability_text(row['cell'])}"
    ),
)


def matrix_report(places: Sequence[Path], out: Path) -> tuple[Path, ...]:
    """Write the matrix of the bundles at `places` into `out`, and return what was written.

    matrix.png, matrix.svg, matrix.json, drills.md and claims.md; the same bundles give the same
    bytes. Raises BundleError if one is no bundle of a drill or `out` cannot be written.
    """
    from wanlat.analysis.charts import style

    draw = resolve_name("wanlat.analysis.charts.drill_matrix:draw")
    matrix = read_matrix(places)
    document = json.dumps(matrix.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
    texts = {
        "matrix.json": f"{document}\n",
        "drills.md": markdown(drills_table(matrix)),
        "claims.md": markdown(claims_table(matrix)),
    }
    pictures = style.save(draw(matrix), out / "matrix")
    for name, text in texts.items():
        replace_text(out / name, text)
    return (*pictures, *(out / name for name in texts))


def drills_table(matrix: DrillMatrix) -> Grid:
    """One row a drill and system; a pair that was never run says so."""
    labels = series_labels(matrix.series)
    rows = []
    for key, (one, label) in product(matrix.drills, labels.items()):
        cells: Sequence[str] = (NOT_RUN, *[EN_DASH] * (len(_RUN_COLUMNS) - 1))
        if (cell := matrix.cells.get((key, one))) is not None:
            run = cell.shown
            longest = (
                None if run.document["recovered"] is None else run.document["longest_outage_s"]
            )
            row = {**run.document, "cell": cell, "longest": seconds(longest)}
            row["not_sent"] = run.reads.not_sent + run.writes.not_sent
            cells = [column.of(row) for column in _RUN_COLUMNS]
        rows.append((key.name + (f" × {key.scale:g}" if key.scale != 1 else ""), label, *cells))
    headers = ("drill", "system", *(column.header for column in _RUN_COLUMNS))
    words = frozenset({"drill", "system", "durability", *headers[2:4]})
    return Grid(title_of_matrix(matrix), headers, tuple(rows), words)


def claims_table(matrix: DrillMatrix) -> Grid:
    """Claims × systems."""
    labels = series_labels(matrix.series)
    headers = ("id", "claim", "source", "drill", "bound", *labels.values())
    rows = tuple(
        (
            *(row.id, row.claim, row.source, row.drill.name, row.bound),
            *(_judged(row.verdicts.get(one), (row.drill, one) in matrix.cells) for one in labels),
        )
        for row in matrix.claims
    )
    return Grid("Claims", headers, rows, frozenset(headers))


def title_of_matrix(matrix: DrillMatrix) -> str:
    """ "12 drills on 3 systems"."""
    systems = len({one.system for one in matrix.series})
    return f"{count(len(matrix.drills), 'drill')} on {count(systems, 'system')}"


def finding_of_matrix(matrix: DrillMatrix) -> str:
    """What was found: in how many drills each system lost writes, or has them wrong."""
    failed = {
        label: sum(
            cell.worst.verdict == "fail" for (_, of), cell in matrix.cells.items() if of == one
        )
        for one, label in row_labels(matrix.series).items()
    }
    said = ", ".join(f"{label} in {number or 'none'}" for label, number in failed.items())
    return f"{title_of_matrix(matrix)}; writes lost or wrong: {said}"


def runs_sentences(matrix: DrillMatrix) -> list[str]:
    """Of which cells there is more than one run, and which is shown."""
    labels = series_labels(matrix.series)
    several = [
        f"{key.name} on {labels[one]} ({len(cell.runs)} runs)"
        for (key, one), cell in matrix.cells.items()
        if len(cell.runs) > 1
    ]
    of_all = "More than one run, of which the newest complete one is shown, and the worst "
    return [f"{of_all}durability of all: {'; '.join(several)}."] if several else []


def recovery_text(run: Run) -> str:
    """How long until all was normal again, or why nobody can say."""
    document = run.document
    if not run.is_complete:
        how = _ENDED.get(document["status"], document["status"])
        return f"{how} in `{document['reached']}`" if document["reached"] else str(how)
    if not document["recovered"]:
        return "not known" if document["recovered"] is None else "not back"
    back_s = document["recovery_s"]
    return f"back in {seconds(back_s)}" if back_s else "undisturbed"


def durability_text(cell: Cell) -> str:
    """What was lost, in the worst of the runs, and of how many runs that is said."""
    run, runs = cell.worst, len(cell.runs)
    unread = run.document["durability"].get("unread")
    unknown = f"{unread} unread" if unread else "not read again"
    otherwise = {"pass": "none lost", "unknown": unknown}.get(run.verdict, run.verdict)
    text = ", ".join(f"{n} {verdict}" for verdict, n in run.wrong.items()) or otherwise
    alike = sum(other.verdict == run.verdict for other in cell.runs)
    if runs > 1:
        text += f", {runs} runs" if alike == runs else f", {alike} of {runs} runs"
    return text


def _shares(served: Served) -> str:
    if len(served.shares) == 1:
        return percent(*served.shares.values())
    return ", ".join(f"{client} {percent(share)}" for client, share in served.shares.items())


def _p99(served: Served) -> str:
    return f"{format_ms(served.p99_ms)} ({format_ms(served.normal_p99_ms)})"


def _judged(judged: Judged | None, was_run: bool) -> str:
    if judged is None:
        return EN_DASH if was_run else NOT_RUN
    of = "" if judged.runs <= 1 else f" ({judged.runs_alike} of {judged.runs} runs)"
    return f"**{judged.verdict}**{of}{f': {judged.evidence}' if judged.evidence else ''}"
