"""What a matrix of drills says in words: its cells, and its tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wanlat.analysis.drill.matrix import Cell, DrillKey, Matrix, Operation, Run, Verdict
from wanlat.analysis.drill.wording import BAD, percent, seconds
from wanlat.analysis.names import EN_DASH, count, format_ms, series_labels

NOT_RUN = "not run"

_ENDED = {"running": "killed", "interrupted": "interrupted", "failed": "failed"}


def drill_label(key: DrillKey) -> str:
    """Where a drill stood, and how much shorter than written it was."""
    return key.topology + (f", times × {key.scale:g}" if key.scale != 1 else "")


def recovery_text(run: Run) -> str:
    """How long until all was normal again, or why nobody can say."""
    if not run.is_complete:
        how = _ENDED.get(run.status, run.status)
        return f"{how} in `{run.reached}`" if run.reached else how
    if run.recovered is None:
        return "not known"
    if not run.recovered:
        return "not back"
    return f"back in {seconds(run.recovery_s)}" if run.recovery_s else "undisturbed"


def durability_text(cell: Cell) -> str:
    """What was lost, in the worst of the runs, and of how many runs that is said."""
    run = cell.worst
    runs = len(cell.runs)
    text = _durability(run)
    if runs == 1:
        return text
    alike = sum(other.verdict == run.verdict for other in cell.runs)
    return f"{text}, {runs} runs" if alike == runs else f"{text}, {alike} of {runs} runs"


def _durability(run: Run) -> str:
    wrong = [f"{n} {verdict}" for verdict in BAD if (n := run.durability.get(verdict))]
    if wrong:
        return ", ".join(wrong)
    if run.verdict == "pass":
        return "none lost"
    if run.verdict == "fail":
        return "fail"
    unread = run.durability.get("unread")
    return f"{unread} unread" if unread else "not read again"


def runs_sentences(matrix: Matrix) -> list[str]:
    """Of which cells there is more than one run, and which is shown."""
    labels = series_labels(matrix.series)
    several = [
        f"{key.name} on {labels[one]} ({len(cell.runs)} runs)"
        for (key, one), cell in matrix.cells.items()
        if len(cell.runs) > 1
    ]
    if not several:
        return []
    return [
        "More than one run, of which the newest complete one is shown, and the worst durability "
        f"of all: {'; '.join(several)}."
    ]


def claims_markdown(matrix: Matrix) -> str:
    """The table of claims × systems in Markdown."""
    labels = series_labels(matrix.series)
    rows = []
    for row in matrix.claims:
        cells = [
            _claim_cell(row.verdicts.get(one), (row.drill, one) in matrix.cells)
            for one in matrix.series
        ]
        said = [row.id, row.claim, row.source or EN_DASH, row.drill.name, row.bound]
        rows.append([*said, *cells])
    headers = ["id", "claim", "source", "drill", "bound"]
    return _table([*headers, *(labels[one] for one in matrix.series)], rows)


def _claim_cell(verdict: Verdict | None, was_run: bool) -> str:
    if verdict is None:
        return EN_DASH if was_run else NOT_RUN
    of = "" if verdict.runs <= 1 else f" ({verdict.alike} of {verdict.runs} runs)"
    evidence = f": {verdict.evidence}" if verdict.evidence else ""
    return f"**{verdict.verdict}**{of}{evidence}"


_DRILL_HEADERS = (
    "drill",
    "system",
    "reads ok during the fault",
    "writes ok",
    "p99 of reads, ms (before)",
    "p99 of writes, ms (before)",
    "longest outage",
    "back to normal",
    "acknowledged",
    "durability",
)


def drills_markdown(matrix: Matrix) -> str:
    """One row a drill and system in Markdown; a pair that was never run says so."""
    labels = series_labels(matrix.series)
    rows = []
    for key in matrix.drills:
        for one in matrix.series:
            cell = matrix.cells.get((key, one))
            scaled = f" × {key.scale:g}" if key.scale != 1 else ""
            head = [f"{key.name}{scaled}", labels[one]]
            if cell is None:
                rows.append([*head, NOT_RUN, *[EN_DASH] * (len(_DRILL_HEADERS) - 3)])
                continue
            run = cell.shown
            rows.append(
                [
                    *head,
                    _shares(run.reads),
                    _shares(run.writes),
                    _p99(run.reads),
                    _p99(run.writes),
                    seconds(run.longest_outage_s if run.recovered is not None else None),
                    recovery_text(run),
                    str(run.durability.get("acknowledged", EN_DASH)),
                    f"{cell.worst.verdict}: {durability_text(cell)}",
                ]
            )
    return _table(list(_DRILL_HEADERS), rows)


def _shares(operation: Operation) -> str:
    if len(operation.shares) == 1:
        return percent(operation.availability)
    return ", ".join(f"{one.client} {percent(one.availability)}" for one in operation.shares)


def _p99(operation: Operation) -> str:
    return f"{format_ms(operation.p99_ms)} ({format_ms(operation.normal_p99_ms)})"


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "".join(f"| {' | '.join(_escaped(cell) for cell in line)} |\n" for line in lines)


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def title_of(matrix: Matrix) -> str:
    """ "12 drills on 3 systems"."""
    systems: set[str] = {one.system for one in matrix.series}
    return f"{count(len(matrix.drills), 'drill')} on {count(len(systems), 'system')}"
