"""A matrix of drills: what its tables, its chart and its files say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from wanlat.analysis.figures.drill.matrix import DrillMatrix, Run, read_matrix, worst
from wanlat.analysis.figures.drill.read import ENDED
from wanlat.analysis.grid import Grid, markdown
from wanlat.analysis.names import EN_DASH, count, format_ms, row_labels, series_labels
from wanlat.analysis.report import replace_text
from wanlat.analysis.report.drill import percent, seconds
from wanlat.analysis.report.section import Column

Row = Mapping[str, Any]
NOT_RUN = "not run"

_COLUMNS = (
    Column("reads ok during the fault", lambda row: _shares(row["reads"]), words=True),
    Column("writes ok", lambda row: _shares(row["writes"]), words=True),
    Column("never sent", lambda row: str(row["reads"]["not_sent"] + row["writes"]["not_sent"])),
    Column("p99 of reads, ms (before)", lambda row: _p99(row["reads"])),
    Column("p99 of writes, ms (before)", lambda row: _p99(row["writes"])),
    Column("longest outage", lambda row: seconds(row["longest_outage_s"])),
    Column("back to normal", "{back}"),
    Column("acknowledged", "{durability[acknowledged]}"),
    Column("durability", "{lost}", words=True),
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
    rows = []
    for key, (one, label) in product(matrix.drills, series_labels(matrix.series).items()):
        cells = [NOT_RUN, *[EN_DASH] * (len(_COLUMNS) - 1)]
        if runs := matrix.cells.get((key, one)):
            row = {**runs[0].figures, **runs[0].figures["during"], "back": recovery_text(runs[0])}
            row["lost"] = f"{worst(runs).figures['durability']['verdict']}: {durability_text(runs)}"
            if row["recovered"] is None:
                row["longest_outage_s"] = None
            cells = [column.of(row) for column in _COLUMNS]
        rows.append((f"{key.name}{scaled(key.scale)}", label, *cells))
    headers = ("drill", "system", *(column.header for column in _COLUMNS))
    words = {"drill", "system", *(column.header for column in _COLUMNS if column.words)}
    return Grid(title_of_matrix(matrix), headers, tuple(rows), frozenset(words))


def claims_table(matrix: DrillMatrix) -> Grid:
    """Claims × systems."""
    labels = series_labels(matrix.series)
    headers = ("id", "claim", "source", "drill", "bound", *labels.values())
    rows = []
    for row in matrix.claims:
        words = (row["id"], row["claim"], row["source"], row["drill"].name, row["bound"])
        was_run = {one: (row["drill"], one) in matrix.cells for one in labels}
        told = [_judged(row["verdicts"].get(one), was_run[one]) for one in labels]
        rows.append((*words, *told))
    return Grid("Claims", headers, tuple(rows), frozenset(headers))


def scaled(scale: float) -> str:
    """How much longer than written a drill was, where it was."""
    return f" × {scale:g}" if scale != 1 else ""


def title_of_matrix(matrix: DrillMatrix) -> str:
    """ "12 drills on 3 systems"."""
    systems = len({one.system for one in matrix.series})
    return f"{count(len(matrix.drills), 'drill')} on {count(systems, 'system')}"


def finding_of_matrix(matrix: DrillMatrix) -> str:
    """What was found: in how many drills each system lost writes, or has them wrong."""
    said = []
    for one, label in row_labels(matrix.series).items():
        cells = (runs for (_, of), runs in matrix.cells.items() if of == one)
        said.append(f"{label} in {sum(bool(worst(runs).wrong) for runs in cells) or 'none'}")
    return f"{title_of_matrix(matrix)}; writes lost or wrong: {', '.join(said)}"


def recovery_text(run: Run) -> str:
    """How long until all was normal again, or why nobody can say."""
    figures = run.figures
    if how := ENDED.get(figures["status"]):
        return f"{how} in `{figures['reached']}`" if figures["reached"] else how
    if not figures["recovered"]:
        return "not known" if figures["recovered"] is None else "not back"
    back_s = figures["recovery_s"]
    return f"back in {seconds(back_s)}" if back_s else "undisturbed"


def durability_text(runs: Sequence[Run]) -> str:
    """What was lost, in the worst of the runs of a cell, and of how many runs that is said."""
    run = worst(runs)
    counts = run.figures["durability"]
    unread = f"{counts['unread']} unread" if counts.get("unread") else "not read again"
    text = ", ".join(f"{n} {verdict}" for verdict, n in run.wrong.items())
    text = text or ("none lost" if counts["verdict"] == "pass" else unread)
    alike = sum(each.figures["durability"]["verdict"] == counts["verdict"] for each in runs)
    return text + (f", {alike} of {len(runs)} runs" if len(runs) > 1 else "")


def _shares(served: Row) -> str:
    shares = served["availability_by_client"]
    if len(shares) < 2:
        return percent(served["availability"])
    return ", ".join(f"{client} {percent(share)}" for client, share in shares.items())


def _p99(served: Row) -> str:
    return f"{format_ms(served['p99_ms'])} ({format_ms(served['p99_before_ms'])})"


def _judged(judged: Row | None, was_run: bool) -> str:
    if judged is None:
        return EN_DASH if was_run else NOT_RUN
    of = "" if judged["runs"] == 1 else f" ({judged['runs_alike']} of {judged['runs']} runs)"
    evidence = f": {judged['evidence']}" if judged["evidence"] else ""
    return f"**{judged['verdict']}**{of}{evidence}"
