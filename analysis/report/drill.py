"""The report of a drill, and that of many of them side by side."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from wanlat.analysis.claims import Verdict
from wanlat.analysis.figures.drill.matrix import DrillMatrix, DrillRun, read_drills, worst
from wanlat.analysis.figures.drill.read import ENDED, Drill, fault_label, how_it_ended, read_drill
from wanlat.analysis.figures.drill.verdicts import WRONG, bound_of
from wanlat.analysis.files import replace_text
from wanlat.analysis.names import EN_DASH, count, format_ms, listing, row_labels, series_labels
from wanlat.analysis.section import Column, Grid, markdown
from wanlat.bundle.matrix import Matrix
from wanlat.bundle.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]

_NAMED_AT_MOST = 6


def seconds(value: float | None) -> str:
    """A duration for people, with about three digits."""
    if value is None:
        return EN_DASH
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} s"


def latency(value_ms: float | None) -> str:
    """A latency with its unit, which is seconds from one on."""
    if value_ms is None or value_ms >= 1000:
        return seconds(value_ms and value_ms / 1000)
    return f"{format_ms(value_ms)} ms"


def percent(share: float | None) -> str:
    """`share` for people; never rounded to 0 or 100 % where it is neither. None: a dash."""
    if share is None:
        return EN_DASH
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    texts = (f"{100 * share:.{places}f}" for places in (1, 2, 3, 6))
    return f"{next(text for text in texts if float(text) not in (0.0, 100.0))} %"


def ending(drill: Drill) -> str | None:
    """How the drill ended and how far it had got, if it did not end as it should."""
    how = how_it_ended(drill.bundle)
    reached = f", having reached `{drill['reached']}`" if drill["reached"] else ""
    return how and f"{how}{reached}"


def durability_sentence(drill: Drill) -> str:
    """The verdict, and the counts it rests on."""
    return f"Durability {drill['durability']['verdict']}: {drill['durability']['why']}"


def length_of(outage: Row) -> str:
    """How long an outage lasted."""
    return f"{'' if outage['ended'] else 'at least '}{seconds(outage['duration_s'])}"


def outage_sentence(drill: Drill) -> str:
    """The longest outage and the time to recover."""
    if drill.requests.empty:
        return "Nothing was measured"
    worst, healed_s = drill.longest_outage, drill["recovery_after_heal_s"]
    first = "No outage"
    if worst is not None:
        first = f"Longest outage {length_of(worst)} ({worst['operation']}s of {worst['client']})"
    if not drill["recovered"]:
        return first if drill["recovered"] is None else f"{first}; not back to normal by the end"
    if not drill["recovery_s"]:
        return f"{first}; never out of the normal"
    after = "" if healed_s is None else f", {seconds(healed_s)} after the last heal"
    return f"{first}; back to normal {seconds(drill['recovery_s'])} after the first fault{after}"


def finding(drill: Drill) -> str:
    """What was found, as a title: ``…: writes of victim out for 56.1 s, nothing lost``."""
    worst, durability = drill.longest_outage, drill["durability"]
    out = "no outage"
    if worst is not None:
        out = f"{worst['operation']}s of {worst['client']} out for {length_of(worst)}"
    lost = ", ".join(f"{durability[name]} {name}" for name in WRONG if durability[name])
    kept = "nothing lost" if durability["verdict"] == "pass" else "loss not known"
    finding_text = "nothing measured" if drill.requests.empty else f"{out}, {lost or kept}"
    return f"{drill['name']}, {drill.label}: {finding_text}"


def claims_sentence(claims: Iterable[Row]) -> str | None:
    """How many claims held, did not, or could not be decided; None without one."""
    counts = Counter(str(claim["verdict"]) for claim in claims)
    words = {Verdict.HOLDS: "held", Verdict.DOES_NOT_HOLD: "did not hold"}
    text = ", ".join(f"{counts[one]} {words.get(one, one)}" for one in Verdict if counts[one])
    return f"Claims: {text}" if text else None


def _failed_before(drill: Drill) -> Iterator[str]:
    """Reads and writes that failed although nothing was broken yet."""
    broken_s = min((fault["begin_s"] for fault in drill["faults"]), default=float("inf"))
    rows = drill.requests
    rows = rows[(rows["phase"] == "before") & ~(rows["end_s"] > broken_s)]
    for name, requests in rows.groupby("operation"):
        if failed := int((requests["outcome"] != "ok").sum()):
            yield f"{failed} of {count(len(requests), str(name))}"


_NOTES: Mapping[str, Callable[[Drill], Iterable[str]]] = {
    "Cut short: {}.": lambda drill: (
        f"`{phase['name']}` after {phase['end_s'] - phase['begin_s']:.1f} s"
        for phase in drill["phases"]
        if phase["begin_s"] is not None and not phase["complete"]
    ),
    "{} got other bytes than were written there: a failure.": lambda drill: (
        [count(drill["wrong_reads"], "read")] if drill["wrong_reads"] else []
    ),
    "{} of moments at which the machine made the network later than is accepted are in no latency "
    "and make no outage; their outcomes count.": lambda drill: (
        [count(drill["late_requests"], "request")] if drill["late_requests"] else []
    ),
    "Outages that began before anything was broken, and count for no fault: {}.": lambda drill: (
        f"{outage['client']}/{outage['operation']}"
        for outage in drill["outages"]
        if outage["before_fault"]
    ),
    "Not everything was well before the fault, not ok were {}.": _failed_before,
    "{} could not be sent by this machine: they are in no availability, and no outage.": (
        lambda drill: [count(drill["not_sent"], "request")] if drill["not_sent"] else []
    ),
    "Too few answers before the fault to say what is normal ({}): only requests that failed count "
    "as an outage.": lambda drill: (
        f"{client['client']}/{operation}"
        for client, operation, figures in drill.clients
        if figures["limit_ms"] is None and drill["faults"]
    ),
    "Not healed by the end of the record: {}.": lambda drill: (
        fault_label(fault) for fault in drill["faults"] if fault["end_s"] is None
    ),
    "Not what they were before their fault: {}.": lambda drill: (
        link["subject"] for link in drill["recalibrations"] if link["verdict"] != "pass"
    ),
    "Ended by itself: {}.": lambda drill: (
        f"{death['node']} at {death['at_s']:.1f} s ({death['detail']})" for death in drill["deaths"]
    ),
}
"""Sentences, and what each is about; without anything it is left out."""

_PHASE_COLUMNS = (
    *(Column(key, f"{{{key}}}", words=True) for key in ("phase", "client", "of")),
    Column("due", "{attempted:d}"),
    Column("ok", "{ok:d}"),
    Column("fail", "{failed:d}"),
    Column("unknown", "{unknown:d}"),
    Column("expired", "{expired:d}"),
    Column("not sent", "{not_sent:d}"),
    Column("available", lambda row: percent(row["availability"])),
    Column("p50 ms", lambda row: format_ms(row["p50_ms"])),
    Column("p99 ms", lambda row: format_ms(row["p99_ms"])),
    Column("max ms", lambda row: format_ms(row["max_ms"])),
)
_CLAIM_COLUMNS = (
    Column("verdict", "{verdict}", words=True),
    Column("claim", "{claim} ({id}, {source})", words=True),
    Column("bound", bound_of, words=True),
    Column("found", "{evidence}", words=True),
)


@dataclass(frozen=True)
class DrillReport:
    """A drill as a block of a report (`wanlat.analysis.summary`)."""

    drill: Drill

    @property
    def notes(self) -> list[str]:
        """How it ended, what came of it, and what a reader of its figures must know."""
        drill = self.drill
        sentences = (ending(drill), outage_sentence(drill), durability_sentence(drill))
        noted = ((sentence, list(subjects(drill))) for sentence, subjects in _NOTES.items())
        return [
            *(f"{sentence}." for sentence in sentences if sentence),
            *(
                sentence.format(listing(names, _NAMED_AT_MOST))
                for sentence, names in noted
                if names
            ),
        ]

    def to_json(self) -> Row:
        """The block `drill` of summary.json."""
        return self.drill.document

    def grids(self) -> Sequence[Grid]:
        """What was sent and what came of it, by phase and client; then the claims."""
        name = self.drill["name"]
        rows, claims = list(_phase_rows(self.drill)), self.drill["claims"]
        ends = [n for n in range(len(rows) - 1) if rows[n]["phase"] != rows[n + 1]["phase"]]
        title = f"{name}: {self.drill.label} on {self.drill['topology']}"
        grids = [
            _grid(title, _PHASE_COLUMNS, rows, lambda row: row["ok"] != row["attempted"], ends)
        ]
        if claims:
            wrong = Verdict.DOES_NOT_HOLD
            title = f"Claims on {name}"
            grids.append(_grid(title, _CLAIM_COLUMNS, claims, lambda row: row["verdict"] == wrong))
        return grids

    def charts(self) -> Mapping[str, Figure]:
        """The timeline."""
        draw = resolve_name("wanlat.analysis.charts.drill_timeline:draw")
        return {"drill-timeline": draw(self.drill)}


def drill_report(source: Run | Matrix) -> DrillReport | None:
    """The report of the drill that left `source`; None where a study did."""
    if isinstance(source, Matrix) or not source.is_drill:
        return None
    return DrillReport(read_drill(source))


def _phase_rows(drill: Drill) -> Iterator[Row]:
    for phase in drill["phases"]:
        if phase["begin_s"] is None:
            nothing = dict.fromkeys([*phase["reads"], "failed"])
            yield {**nothing, "phase": f"{phase['name']} (not reached)", "client": "", "of": ""}
            continue
        name = phase["name"] if phase["complete"] else f"{phase['name']} (cut)"
        for client, operation, both in drill.clients:
            figures = both["phases"][phase["name"]]
            failed = figures["fail"] - figures["expired"]
            labels = {"phase": name, "client": client["client"], "of": f"{operation}s"}
            yield {**figures, **labels, "failed": failed}


def _grid(
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
    is_trouble: Callable[[Row], bool],
    sections: Iterable[int] = (),
) -> Grid:
    return Grid(
        title=title,
        headers=tuple(column.header for column in columns),
        rows=tuple(tuple(column.text(row) for column in columns) for row in rows),
        text=frozenset(column.header for column in columns if column.words),
        troubled=frozenset(n for n, row in enumerate(rows) if is_trouble(row)),
        sections=frozenset(sections),
    )


NOT_RUN = "not run"

_COLUMNS = (
    Column("reads ok during the fault", lambda row: _shares(row["reads"]), words=True),
    Column("writes ok", lambda row: _shares(row["writes"]), words=True),
    Column("expired", lambda row: str(row["reads"]["expired"] + row["writes"]["expired"])),
    Column("not sent", lambda row: str(row["reads"]["not_sent"] + row["writes"]["not_sent"])),
    Column("p99 of reads, ms (before)", lambda row: _p99(row["reads"])),
    Column("p99 of writes, ms (before)", lambda row: _p99(row["writes"])),
    Column("longest outage", lambda row: seconds(row["longest_outage_s"])),
    Column("back to normal", "{back}"),
    Column("acknowledged", "{durability[acknowledged]}"),
    Column("durability", "{lost}", words=True),
)


MATRIX_FILES = ("matrix.png", "matrix.svg", "matrix.json", "drills.md", "claims.md")


def matrix_report(places: Sequence[Path], out: Path) -> tuple[Path, ...]:
    """Write the matrix of the bundles at `places` into `out`, and return what was written.

    The files are MATRIX_FILES; the same bundles give the same
    bytes. Raises BundleError if one is no bundle of a drill or `out` cannot be written.
    """
    from wanlat.analysis.charts import style

    draw = resolve_name("wanlat.analysis.charts.drill_matrix:draw")
    matrix = read_drills(places)
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
    """One row a drill and system; a pair that was never run is marked."""
    rows = []
    labels = series_labels(matrix.series, matrix.titles)
    for key, (one, label) in product(matrix.drills, labels.items()):
        cells = [NOT_RUN, *[EN_DASH] * (len(_COLUMNS) - 1)]
        if runs := matrix.cells.get((key, one)):
            row = {**runs[0].figures, **runs[0].figures["during"], "back": recovery_text(runs[0])}
            row["lost"] = f"{worst(runs).figures['durability']['verdict']}: {durability_text(runs)}"
            if row["recovered"] is None:
                row["longest_outage_s"] = None
            cells = [column.text(row) for column in _COLUMNS]
        rows.append((f"{key.name}{scaled(key.scale)}", label, *cells))
    headers = ("drill", "system", *(column.header for column in _COLUMNS))
    words = {"drill", "system", *(column.header for column in _COLUMNS if column.words)}
    return Grid(title_of_matrix(matrix), headers, tuple(rows), frozenset(words))


def claims_table(matrix: DrillMatrix) -> Grid:
    """Claims × systems."""
    labels = series_labels(matrix.series, matrix.titles)
    headers = ("id", "claim", "source", "drill", "bound", *labels.values())
    rows = []
    for row in matrix.claims:
        words = (row["id"], row["claim"], row["source"], row["drill"].name, row["bound"])
        was_run = {one: (row["drill"], one) in matrix.cells for one in labels}
        verdicts = [_judged(row["verdicts"].get(one), was_run[one]) for one in labels]
        rows.append((*words, *verdicts))
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
    parts = []
    for one, label in row_labels(matrix.series, matrix.titles).items():
        cells = (runs for (_, series), runs in matrix.cells.items() if series == one)
        parts.append(f"{label} in {sum(bool(worst(runs).wrong) for runs in cells) or 'none'}")
    return f"{title_of_matrix(matrix)}; writes lost or wrong: {', '.join(parts)}"


def recovery_text(run: DrillRun) -> str:
    """How long until all was normal again, or why that is not known.

    Of one that ran beside others only whether: a busy machine is slow to heal a store.
    """
    figures = run.figures
    if how := ENDED.get(figures["status"]):
        return f"{how} in `{figures['reached']}`" if figures["reached"] else how
    if not figures["recovered"]:
        return "not known" if figures["recovered"] is None else "not back"
    back_s = figures["recovery_s"]
    if not back_s:
        return "undisturbed"
    return "back" if figures["at_once"] > 1 else f"back in {seconds(back_s)}"


def durability_text(runs: Sequence[DrillRun]) -> str:
    """What was lost, in the worst of the runs of a cell, and how many of the runs agree."""
    run = worst(runs)
    counts = run.figures["durability"]
    unread = f"{counts['unread']} unread" if counts.get("unread") else "not read again"
    text = ", ".join(f"{n} {verdict}" for verdict, n in run.wrong.items())
    text = text or ("none lost" if counts["verdict"] == "pass" else unread)
    alike = sum(run.figures["durability"]["verdict"] == counts["verdict"] for run in runs)
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
    runs = "" if judged["runs"] == 1 else f" ({judged['runs_alike']} of {judged['runs']} runs)"
    evidence = f": {judged['evidence']}" if judged["evidence"] else ""
    return f"**{judged['verdict']}**{runs}{evidence}"
