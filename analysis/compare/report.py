"""A comparison for people and for scripts: a table, a sentence a change, one JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from wanlat.analysis.compare import Comparison, conditions
from wanlat.analysis.compare.judge import FALSE_ALARMS, Change, Verdict
from wanlat.analysis.endpoints import with_placement
from wanlat.analysis.names import EN_DASH, count, format_ms
from wanlat.analysis.section import (
    Answer,
    Column,
    Figures,
    Grid,
    Row,
    Section,
    as_json,
    escaped,
    markdown,
    print_grid,
    print_notes,
)
from wanlat.bundle.documents import Titles
from wanlat.bundle.errors import one_line
from wanlat.bundle.run import Run

_STYLES = {Verdict.WORSE: "bold red", Verdict.BETTER: "green", Verdict.NOT_DECIDED: "yellow"}

_FIGURES = {
    "round trips": "round_trips",
    "critical path": "chain_round_trips",
    "latency ms": "latency_at_rtt_ms",
    "intercept ms": "intercept_ms",
    "median ms": "median_ms",
    "mean ms": "mean_ms",
    "WAN bytes": "wan_bytes",
    "not ok": "failures",
}
_TABLE = Section(
    key="comparison",
    title="OLD → NEW",
    figures=lambda _bundle: None,
    columns=(
        Column("endpoint", "{endpoint}", words=True),
        *(Column(header, f"{{{key}}}", optional=True) for header, key in _FIGURES.items()),
        Column("verdict", "{verdict}", words=True),
    ),
    definitions={},
    is_trouble=lambda row: bool(row["fails"]),
    group=lambda row: row["system"],
)


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print the table of `comparison`, each change with its interval, notes, and the gate."""
    for side in _sides(comparison):
        console.print(Text(side, "bold"))
    for text in comparison.differs:
        console.print(Text(one_line(f"Not alike: {text}."), "bold yellow"))
    for grid in _grids(comparison):
        print_grid(grid, console)
    for change, text in _changes(comparison):
        console.print(
            Text(one_line(text), _STYLES.get(change.verdict, "") if change.gated else "dim")
        )
    print_notes(comparison.notes, console)
    console.print(Text(_verdict(comparison), "bold green" if comparison.passed else "bold red"))


def page(comparison: Comparison) -> str:
    """The same in Markdown, the verdict first: for the summary of a CI's step."""
    texts = [*(texts for _, texts in _changes(comparison)), *comparison.notes]
    differs = [f"Not alike: {text}." for text in comparison.differs]
    lines = "".join(f"- {escaped(text)}\n" for text in (*_sides(comparison), *differs, *texts))
    return "\n".join([f"**{_verdict(comparison)}**\n", *map(markdown, _grids(comparison)), lines])


def _sides(comparison: Comparison) -> Iterator[str]:
    """What each bundle is, and where."""
    for side, bundle in (("OLD", comparison.old), ("NEW", comparison.new)):
        versions = ", ".join(map(" ".join, conditions.series_of(bundle).values()))
        when = bundle.manifest.started or "at an unknown time"
        description = f"{bundle.study} on {bundle.topology}, {when}: {versions}"
        yield one_line(f"{side}: {bundle.directory} ({description})")


def _grids(comparison: Comparison) -> Sequence[Grid]:
    rows = tuple(map(_cells, comparison.endpoints))
    subject = f"{comparison.new.study} on {comparison.new.topology}"
    figures = Figures(rows, (None,) * len(rows), titles=comparison.titles)
    return Answer(_TABLE, subject, figures).grids()


def _changes(comparison: Comparison) -> Iterator[tuple[Change, str]]:
    """What changed, or could not be compared, a sentence each."""
    for endpoint in comparison.endpoints:
        for change in endpoint["changes"]:
            if change.has_changed or (change.counts and change.verdict is not Verdict.SAME):
                aside = "" if change.gated else "not in the gate: "
                text = sentence(change, comparison.at_rtt_ms)
                yield change, f"{name_of(endpoint, comparison.titles)}: {aside}{text}"


def _verdict(comparison: Comparison) -> str:
    """Whether the gate passes, and how many endpoints became what."""
    counts = ", ".join(f"{n} {verdict}" for verdict, n in _counts(comparison).items() if n)
    gate, failing = ", ".join(comparison.rules.gate), count(len(comparison.failing), "endpoint")
    verdict = f"PASS ({gate})." if comparison.passed else f"FAIL ({gate}): {failing}."
    return f"{verdict} All endpoints: {counts}."


def document(comparison: Comparison) -> dict[str, Any]:
    """What `wanlat compare --json` prints; its keys are in docs/how-to/compare.md."""
    rules, at_rtt_ms = comparison.rules, comparison.at_rtt_ms
    return {
        "old": _side(comparison.old),
        "new": _side(comparison.new),
        "kind": "latency" if at_rtt_ms is None else "round-trips",
        "at_rtt_ms": at_rtt_ms,
        "gate": {
            "kinds": list(rules.gate),
            "strict": rules.strict,
            "allow_missing": rules.allow_missing,
            "passed": comparison.passed,
            "failures": [_failure(endpoint, comparison) for endpoint in comparison.failing],
        },
        "thresholds": {**asdict(rules.thresholds), "false_alarms": FALSE_ALARMS},
        "counts": _counts(comparison),
        "endpoints": [
            {**endpoint, "changes": [_json(change, at_rtt_ms) for change in endpoint["changes"]]}
            for endpoint in comparison.endpoints
        ],
        "differs": list(comparison.differs),
        "notes": list(comparison.notes),
    }


def _counts(comparison: Comparison) -> dict[Verdict, int]:
    verdicts = [endpoint["verdict"] for endpoint in comparison.endpoints]
    return {verdict: verdicts.count(verdict) for verdict in Verdict}


def name_of(endpoint: Row, titles: Titles) -> str:
    """ "Garage GetObject, remote"."""
    name = f"{titles[endpoint['system']]} {endpoint['endpoint']}"
    return with_placement(name, endpoint["placement"])


def sentence(change: Change, at_rtt_ms: float | None = None) -> str:
    """ "round trips 1.00 → 2.00, +1.00 [+0.99, +1.01]: worse (threshold 0.25)"."""
    text = change.definition.title.format(at_rtt_ms=at_rtt_ms)
    unit = " ms" if change.definition.unit == "ms" else ""
    if change.difference is not None and change.ci95 is not None:
        signed = [_written(change, value, "+") for value in (change.difference, *change.ci95)]
        is_exact = change.ci95[0] == change.ci95[1]
        interval = "" if is_exact else f" [{', '.join(signed[1:])}]"
        text = f"{text} {_both(change)}{unit}, {signed[0]}{interval}"
    limit = f" (threshold {_written(change, change.threshold)}{unit})" if change.threshold else ""
    return f"{text}: {change.verdict}{limit}{f'. {change.why}' if change.why else ''}"


def _failure(endpoint: Row, comparison: Comparison) -> str:
    """Why an endpoint fails the gate."""
    failing = [change for change in endpoint["changes"] if change.fails]
    reasons = "; ".join(sentence(change, comparison.at_rtt_ms).rstrip(".") for change in failing)
    name = name_of(endpoint, comparison.titles)
    return f"{name}: {reasons or 'gone: OLD measured it and NEW did not'}."


def _side(bundle: Run) -> dict[str, Any]:
    named = ("directory", "study", "topology", "status")
    return {
        **{name: str(getattr(bundle, name)) for name in named},
        "started": bundle.manifest.started,
        "systems": [one._asdict() for one in conditions.series_of(bundle).values()],
    }


def _json(change: Change, at_rtt_ms: float | None) -> dict[str, Any]:
    fields = {name: as_json(value) for name, value in vars(change).items() if name != "by_start"}
    definition = {"kind": change.definition.kind, "unit": change.definition.unit}
    return fields | definition | {"sentence": sentence(change, at_rtt_ms)}


def _cells(endpoint: Row) -> Row:
    return {
        **dict.fromkeys(_FIGURES.values(), EN_DASH),
        **{change.quantity: _both(change) for change in endpoint["changes"]},
        "system": endpoint["system"],
        "version": endpoint["new_version"] or endpoint["old_version"],
        "endpoint": with_placement(endpoint["endpoint"], endpoint["placement"]),
        "verdict": f"{endpoint['verdict']}{' ✗' if endpoint['fails'] else ''}",
        "fails": endpoint["fails"],
    }


def _both(change: Change) -> str:
    """The figure of OLD and that of NEW, where they differ as they are written."""
    old, new = (_written(change, value) for value in (change.old, change.new))
    return old if old == new else f"{old} → {new}"


def _written(change: Change, value: float | None, sign: str = "") -> str:
    """A figure with about as many digits as it deserves, with a sign where one is wanted."""
    if value is None:
        return EN_DASH
    unit = change.definition.unit
    if unit == "share":
        text = f"{100 * abs(value):.3g} %"
    elif unit == "ms":
        text = format_ms(abs(value))
    else:
        text = f"{abs(value):.2f}" if unit == "round trips" else f"{abs(value):.0f}"
    if value < 0:
        sign = "\N{MINUS SIGN}"
    return sign + text if any(digit in text for digit in "123456789") else text
