"""What the report of a drill says: its tables, its sentences and its notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from wanlat.analysis.claims import Verdict
from wanlat.analysis.figures.drill.claims import bound_of
from wanlat.analysis.figures.drill.document import drill_document
from wanlat.analysis.figures.drill.durability import WRONG
from wanlat.analysis.figures.drill.model import Figures
from wanlat.analysis.figures.drill.read import how_it_ended, read_drill
from wanlat.analysis.figures.result import Row
from wanlat.analysis.grid import Grid
from wanlat.analysis.names import EN_DASH, count, format_ms, listing, series_labels
from wanlat.analysis.report.section import Column

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.figures.drill.model import Drill, Durability

_LATE_MS = 100.0
_NAMED_AT_MOST = 6
_ROUNDS = {"healed": "after the heal", "restarted": "after a full restart"}


# --- figures as people read them ----------------------------------------------------------------


def seconds(value: float | None) -> str:
    """A duration for people, with about three digits."""
    if value is None:
        return EN_DASH
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} s"


def latency(value_ms: float | None) -> str:
    """A latency with its unit, which is seconds from one on."""
    if value_ms is None:
        return EN_DASH
    return f"{format_ms(value_ms)} ms" if value_ms < 1000 else seconds(value_ms / 1000)


def percent(share: float | None) -> str:
    """`share` for people; never rounded to 0 or 100 % where it is neither. None: a dash."""
    if share is None:
        return EN_DASH
    if share in (0.0, 1.0):
        return f"{share:.0%}".replace("%", " %")
    for places in (1, 2, 3):
        text = f"{100 * share:.{places}f}"
        if float(text) not in (0.0, 100.0):
            return f"{text} %"
    return "< 0.001 %" if share < 0.5 else "> 99.999 %"


# --- sentences ----------------------------------------------------------------------------------


def ending(drill: Drill) -> str | None:
    """How the drill ended and how far it had got, if it did not end as it should."""
    how = how_it_ended(drill)
    reached = f" in the stage `{drill.reached}`" if drill.reached else ""
    return how and f"{how}{reached}{f': {drill.reason.rstrip(chr(46))}' if drill.reason else ''}"


def durability_sentence(durability: Durability) -> str:
    """The verdict, the counts it rests on, and what was read again to find them."""
    written = f"{count(durability.acknowledged, 'write')} acknowledged"
    done = [_ROUNDS[one.round] for one in durability.rounds if one.complete]
    begun = [_ROUNDS[one.round] for one in durability.rounds if one.present]
    if not begun:
        # Not to be taken for "none lost".
        return f"Durability {durability.verdict}: {written}, none of them read again"
    wrong, also = (
        [f"{durability[verdict]} {verdict}" for verdict in verdicts if durability[verdict]]
        for verdicts in (WRONG, ("unread", "recovered"))
    )
    wrong = wrong or ["none found lost, corrupt, stale or resurrected"]
    read = f"read again {' and '.join(done)}" if done else f"not all read again {begun[0]}"
    missing = [text for text in _ROUNDS.values() if text not in done]
    if done and missing:
        read += f", but not all of them {' and '.join(missing)}"
    return f"Durability {durability.verdict}: {', '.join([written, *wrong, *also])} ({read})"


def outage_sentence(drill: Drill) -> str:
    """The longest outage and the time to recover."""
    outage = drill.longest_outage
    if drill.requests.empty:
        return "Nothing was measured"
    early = sum(each.before_fault for each in drill.outages)
    first = "No outage"
    if outage is not None:
        least = "" if outage.ended else "at least "
        first = f"Longest outage {least}{seconds(outage.duration_s)} ({outage.operation}s of "
        first += f"{outage.client})"
    elif early:
        first = f"{count(early, 'outage')} that began before anything was broken, and no other"
    if drill.recovered is None:
        return first
    if not drill.recovered:
        return f"{first}; not back to normal by the end"
    if not drill.recovery_s:
        return f"{first}; never out of the normal"
    healed = drill.recovery_after_heal_s
    after = "" if healed is None else f", {seconds(healed)} after the last heal"
    return f"{first}; back to normal {seconds(drill.recovery_s)} after the first fault{after}"


def finding(drill: Drill) -> str:
    """What was found, as a title: ``…: writes of victim out for 56.1 s, nothing lost``."""
    outage, durability = drill.longest_outage, drill.durability
    out = "no outage"
    if outage is not None:
        least = "" if outage.ended else "at least "
        out = f"{outage.operation}s of {outage.client} out for {least}{seconds(outage.duration_s)}"
    lost = ", ".join(f"{durability[name]} {name}" for name in WRONG if durability[name])
    kept = "nothing lost" if durability.verdict == "pass" else "loss not known"
    found = "nothing measured" if drill.requests.empty else f"{out}, {lost or kept}"
    return f"{drill.name}, {series_labels([drill.series])[drill.series]}: {found}"


def claims_sentence(verdicts: Iterable[str]) -> str:
    """How many claims held, did not, or could not be decided."""
    counts = Counter(map(str, verdicts))
    words = {"holds": "held", "does not hold": "did not hold", "not decided": "not decided"}
    return f"Claims: {', '.join(f'{counts[v]} {word}' for v, word in words.items() if counts[v])}"


# --- notes --------------------------------------------------------------------------------------


def _failed_before(drill: Drill) -> list[str]:
    """Reads and writes that failed although nothing was broken yet."""
    rows = drill.requests[drill.requests["phase"] == "before"]
    if drill.faults:  # what was in flight when the first began is its doing
        rows = rows[~(rows["end_s"] > min(fault.acts_from_s for fault in drill.faults))]
    return [
        f"{failed} of {count(len(of), str(name))}"
        for name, of in rows.groupby("operation")
        if (failed := int((of["outcome"] != "ok").sum()))
    ]


def _queued_before(drill: Drill) -> list[str]:
    """Clients of which half of the requests of the first phase were sent `interval` too late."""
    found = []
    for client in drill.clients:
        before = client.phases["before"]
        due_ms, start_ms = before.p50_ms, before.from_start.p50_ms
        if due_ms is not None and start_ms is not None and drill.interval_ms is not None:
            found += [client.name] if due_ms - start_ms > drill.interval_ms else []
    return found


_NOTES: Mapping[str, Callable[[Drill], Sequence[str]]] = {
    "Cut short: {}.": lambda drill: [
        f"`{each.name}` after {each.end_s - each.begin_s:.1f} s"
        for each in drill.phases
        if each.begin_s is not None and each.end_s is not None and not each.complete
    ],
    "The last line of {} is cut short and left out.": lambda drill: (
        ["samples.jsonl"] if drill.bundle.truncated else []
    ),
    "Whether anything was lost is not known: {}.": lambda drill: (
        [drill.durability.why] if drill.durability.verdict == "unknown" else []
    ),
    "{} of which nobody knew whether it was executed, found (recovered): that is no error.": (
        lambda drill: _number(drill.durability["recovered"], "write")
    ),
    "{} not found at first by some node, and found when it was asked again.": (
        lambda drill: _number(drill.durability.late, "key")
    ),
    "{} during the phases got other bytes than were written there: they count as failures.": (
        lambda drill: _number(drill.wrong_reads, "read")
    ),
    "Outages that began before anything was broken, and count for no fault: {}.": lambda drill: [
        f"{each.client}/{each.operation}" for each in drill.outages if each.before_fault
    ],
    "Not everything was well before the fault, not ok were {}.": _failed_before,
    "Requests waited in line although nothing was broken yet ({}): they take longer than "
    "`interval` is. Latencies from when they were due grow with the length of the phase; choose a "
    "longer `interval`.": _queued_before,
    "Too few answers before the fault to say what is normal ({}): only requests that failed count "
    "as an outage.": lambda drill: [
        each.name for each in drill.clients if each.limit_ms is None and drill.faults
    ],
    "Not healed by the end of the record: {}.": lambda drill: [
        each.label for each in drill.faults if each.end_s is None
    ],
    "Injected later than planned: {}.": lambda drill: [
        f"{each.label} by {each.late_ms:.0f} ms"
        for each in drill.faults
        if each.late_ms is not None and each.late_ms > _LATE_MS
    ],
    "Not what they were before their fault: {}.": lambda drill: [
        each.subject for each in drill.recalibrations if not each.passed
    ],
    "Ended by itself: {}.": lambda drill: [
        f"{each.node} at {each.at_s:.1f} s{f' ({each.detail})' if each.detail else ''}"
        for each in drill.deaths
    ],
}
"""Sentences, and what each is said of; of nothing it is not said."""


def notes_on(drill: Drill) -> tuple[str, ...]:
    """How `drill` ended, what came of it, and what a reader of its figures must know."""
    said = (ending(drill), outage_sentence(drill), durability_sentence(drill.durability))
    noted = ((sentence, of(drill)) for sentence, of in _NOTES.items())
    return (
        *(f"{sentence}." for sentence in said if sentence),
        *(sentence.format(listing(names, _NAMED_AT_MOST)) for sentence, names in noted if names),
    )


def _number(number: int, noun: str) -> list[str]:
    return [count(number, noun)] if number else []


# --- tables -------------------------------------------------------------------------------------

_PHASE_COLUMNS = (
    Column("phase", "{phase}", words=True),
    Column("client", "{client}", words=True),
    Column("of", "{of}", words=True),
    Column("sent", "{sent:d}"),
    Column("ok", "{ok:d}"),
    Column("fail", "{failed:d}"),
    Column("unknown", "{unknown:d}"),
    Column("never sent", "{not_sent:d}"),
    Column("available", lambda row: percent(row["availability"])),
    *(
        Column(f"{name} ms", lambda row, key=f"{name}_ms": format_ms(row[key]))  # type: ignore[misc]
        for name in ("p50", "p99", "max")
    ),
)
_CLAIM_COLUMNS = (
    Column("verdict", "{verdict}", words=True),
    Column("claim", "{claim} ({id}, {source})", words=True),
    Column("bound", bound_of, words=True),
    Column("found", "{evidence}", words=True),
)


@dataclass(frozen=True)
class DrillReport:
    """A drill as a block of a report (`wanlat.analysis.blocks`)."""

    drill: Drill

    @property
    def notes(self) -> tuple[str, ...]:
        """What came of it in sentences; they come before all other notes."""
        return notes_on(self.drill)

    def to_json(self) -> dict[str, Any]:
        """The block `drill` of summary.json."""
        return drill_document(self.drill)

    def grids(self) -> Sequence[Grid]:
        """What was sent and what came of it, by phase and client; then the claims."""
        rows = list(_phase_rows(self.drill))
        ends = [n for n in range(len(rows) - 1) if rows[n]["phase"] != rows[n + 1]["phase"]]
        grids = [
            _grid(
                title_of(self.drill),
                _PHASE_COLUMNS,
                rows,
                lambda row: bool(row["fail"] or row["unknown"]),
                sections=frozenset(ends),
            )
        ]
        if claims := drill_document(self.drill)["claims"]:
            grids.append(
                _grid(
                    f"Claims on {self.drill.name}",
                    _CLAIM_COLUMNS,
                    claims,
                    lambda row: row["verdict"] == Verdict.DOES_NOT_HOLD,
                )
            )
        return grids

    def charts(self) -> Mapping[str, Figure]:
        """The timeline."""
        draw = resolve_name("wanlat.analysis.charts.drill_timeline:draw")
        return {"drill-timeline": draw(self.drill)}


def drill_report(bundle: Bundle) -> DrillReport | None:
    """The report of the drill that left `bundle`; None where a study did."""
    return DrillReport(read_drill(bundle)) if bundle.is_drill else None


def title_of(drill: Drill) -> str:
    """The drill, the version of the system, and the topology."""
    return f"{drill.name}: {series_labels([drill.series])[drill.series]} on {drill.topology}"


def _phase_rows(drill: Drill) -> Iterator[dict[str, Any]]:
    nothing: dict[str, Any] = dict.fromkeys(each.name for each in fields(Figures))
    for phase in drill.phases:
        if phase.begin_s is None:
            yield {"phase": f"{phase.name} (not reached)", "client": "", "of": "", **nothing} | {
                "failed": None
            }
            continue
        name = phase.name if phase.complete else f"{phase.name} (cut)"
        for client in drill.clients:
            figures = client.phases[phase.name]
            yield {
                **{"phase": name, "client": client.client, "of": f"{client.operation}s"},
                **vars(figures),
                "failed": figures.fail - figures.not_sent,
            }


def _grid(
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
    is_trouble: Callable[[Row], bool] = lambda _row: False,
    sections: frozenset[int] = frozenset(),
) -> Grid:
    return Grid(
        title=title,
        headers=tuple(column.header for column in columns),
        rows=tuple(tuple(column.of(row) for column in columns) for row in rows),
        text=frozenset(column.header for column in columns if column.words),
        troubled=frozenset(n for n, row in enumerate(rows) if is_trouble(row)),
        sections=sections,
    )
