"""A comparison for people and for scripts: sentences, a table on a terminal, one JSON document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.compare import Comparison, Endpoint, conditions
from wanlat.analysis.compare.judge import (
    FALSE_ALARMS,
    SUPPORTS,
    Change,
    Quantity,
    Reason,
    Verdict,
)
from wanlat.analysis.grid import Grid, print_grid, print_notes
from wanlat.analysis.names import EN_DASH, count, display_system, format_ms, short_version
from wanlat.analysis.placement import with_placement

if TYPE_CHECKING:
    from rich.console import Console

MINUS = "\N{MINUS SIGN}"

_COLUMNS = {
    True: {
        Quantity.ROUND_TRIPS: "round trips",
        Quantity.CHAIN: "critical path",
        Quantity.LATENCY_AT: "ms at {at_rtt_ms:g} ms",
        Quantity.INTERCEPT: "intercept ms",
        Quantity.WAN_BYTES: "WAN bytes",
        Quantity.FAILURES: "not ok",
    },
    False: {
        Quantity.MEDIAN: "median ms",
        Quantity.MEAN: "mean ms",
        Quantity.OUTLIERS: "outliers",
        Quantity.FAILURES: "not ok",
    },
}
"""Of studies of round trips, and of others."""
_STYLES = {
    Verdict.WORSE: "bold red",
    Verdict.NOT_COMPARABLE: "magenta",
    Verdict.BETTER: "green",
    Verdict.NOT_DECIDED: "yellow",
}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print the tables of `comparison`, each change with its interval, notes, and the gate."""
    from rich.text import Text

    def line(text: str, style: str = "") -> None:
        console.print(Text(text, style=style))

    for side, bundle in (("OLD", comparison.old), ("NEW", comparison.new)):
        started = bundle.manifest.get("started")
        when = f", {started}" if started else ""
        line(f"{side}: {bundle.directory} ({bundle.study} on {bundle.topology}{when})", "bold")
    for text in comparison.differs:
        line(f"Not alike: {text}.", "bold yellow")
    for grid in _grids(comparison):
        print_grid(grid, console)
    for endpoint in comparison.endpoints:
        for text, style in _lines(endpoint, comparison.at_rtt_ms):
            line(f"{name_of(endpoint)}: {text}", style)
    reasons = {
        change.reason for each in comparison.endpoints for change in each.changes if change.gated
    }
    advice = "More samples decide what may be chance, or wider thresholds."
    print_notes([*comparison.notes, *([advice] if Reason.CHANCE in reasons else [])], console)
    line(gate_sentence(comparison), "bold green" if comparison.passed else "bold red")


def gate_sentence(comparison: Comparison) -> str:
    """Whether the gate passes, and how many endpoints have which verdict."""
    counts = ", ".join(f"{n} {verdict}" for verdict, n in comparison.counts.items() if n)
    gate = ", ".join(comparison.rules.gate)
    if comparison.passed:
        return f"PASS ({gate}). Endpoints: {counts}."
    return f"FAIL ({gate}): {count(len(comparison.failing), 'endpoint')}. All: {counts}."


def name_of(endpoint: Endpoint) -> str:
    """ "Garage GetObject, remote"."""
    (system, _), name, placement = endpoint.group
    return with_placement(f"{display_system(system)} {name}", placement)


def failure_sentence(endpoint: Endpoint, at_rtt_ms: float | None) -> str:
    """Why an endpoint fails the gate."""
    if endpoint.verdict is Verdict.GONE:
        return f"{name_of(endpoint)}: gone. OLD measured it and NEW did not."
    failing = [change for change in endpoint.changes if change.fails]
    reasons = _sentences(_without_support(failing), at_rtt_ms)
    return f"{name_of(endpoint)}: {'; '.join(reason.rstrip('.') for reason in reasons)}."


def change_sentence(change: Change, at_rtt_ms: float | None = None) -> str:
    """ "round trips 1.00 → 2.00, +1.00 [+0.99, +1.01]: worse (threshold 0.25)"."""
    quantity, title = change.quantity, _title(change.quantity, at_rtt_ms)
    if change.difference is None:
        return f"{title}: {change.verdict}. {change.why or ''}".rstrip()
    figures = f"{title} {_difference(change)}"
    if quantity not in (Quantity.GAINED, Quantity.GAINED_CHAIN):
        old, new = (_figure(quantity, value) for value in (change.old, change.new))
        figures = f"{title} {old} → {new}{_unit(quantity)}, {_difference(change)}"
    threshold = f"{_figure(quantity, change.threshold)}{_unit(quantity)}"
    limit = f" (threshold {threshold})" if change.threshold else ""
    return f"{figures}: {change.verdict}{limit}{f'. {change.why}' if change.why else ''}"


def document(comparison: Comparison) -> dict[str, Any]:
    """What `wanlat compare --json` prints; its keys are in docs/compare.md."""
    rules, at_rtt_ms = comparison.rules, comparison.at_rtt_ms
    return {
        "old": _side(comparison.old),
        "new": _side(comparison.new),
        "kind": "round-trips" if comparison.of_round_trips else "latency",
        "at_rtt_ms": at_rtt_ms,
        "gate": {
            "kinds": list(rules.gate),
            "strict": rules.strict,
            "allow_missing": rules.allow_missing,
            "passed": comparison.passed,
            "failures": [failure_sentence(each, at_rtt_ms) for each in comparison.failing],
        },
        "thresholds": {**asdict(rules.thresholds), "false_alarms": FALSE_ALARMS},
        "counts": dict(comparison.counts),
        "endpoints": [_endpoint(each, at_rtt_ms) for each in comparison.endpoints],
        "differs": list(comparison.differs),
        "notes": list(comparison.notes),
    }


def _side(bundle: Bundle) -> dict[str, Any]:
    started = bundle.manifest.get("started")
    return {
        "directory": str(bundle.directory),
        "study": bundle.study,
        "topology": bundle.topology,
        "started": str(started) if started else None,
        "status": bundle.status,
        "systems": [one._asdict() for one in conditions.series_of(bundle).values()],
    }


def _endpoint(endpoint: Endpoint, at_rtt_ms: float | None) -> dict[str, Any]:
    (system, _), name, placement = endpoint.group
    old, new = endpoint.old, endpoint.new
    modes = {"old": endpoint.old_modes, "new": endpoint.new_modes}
    return {
        "system": system,
        "old_system": old and old.series.system,
        "old_version": old and old.series.version,
        "new_version": new and new.series.version,
        "endpoint": name,
        "placement": placement,
        "verdict": endpoint.verdict,
        "fails": endpoint.fails,
        "changes": [_change(change, at_rtt_ms) for change in endpoint.changes],
        "modes": {
            side: [
                {"share": _rounded(share), "round_trips": _rounded(trips)} for share, trips in of
            ]
            for side, of in modes.items()
        },
    }


def _change(change: Change, at_rtt_ms: float | None) -> dict[str, Any]:
    quantity, found = change.quantity, change.difference
    return {
        "quantity": quantity.key,
        "kind": quantity.kind,
        "unit": quantity.unit,
        "old": _rounded(change.old),
        "new": _rounded(change.new),
        "difference": found and _rounded(found.estimate),
        "ci95": found and [_rounded(bound) for bound in found.ci95],
        "p": found and found.p,
        "p_adjusted": change.p_adjusted,
        "threshold": _rounded(change.threshold),
        "verdict": change.verdict,
        "missing": change.missing,
        "gated": change.gated,
        "fails": change.fails,
        "why": change.why,
        "sentence": change_sentence(change, at_rtt_ms),
    }


def _rounded(value: float | None) -> float | None:
    """To six places: nanoseconds where it is milliseconds."""
    return None if value is None or not math.isfinite(value) else round(value, 6)


def _grids(comparison: Comparison) -> Iterator[Grid]:
    """A table for each system: figures of OLD → of NEW, and the verdict of the gate."""
    columns = _COLUMNS[comparison.of_round_trips]
    headers = [header.format(at_rtt_ms=comparison.at_rtt_ms or 0.0) for header in columns.values()]
    for versions, group in groupby(comparison.endpoints, key=_versions):
        rows = list(group)
        yield Grid(
            title=versions,
            headers=("endpoint", *headers, "verdict"),
            rows=tuple(
                (
                    with_placement(*row.group[1:]),
                    *(_cell(row.change(quantity)) for quantity in columns),
                    f"{row.verdict}{' ✗' if row.fails else ''}",
                )
                for row in rows
            ),
            text=frozenset({"endpoint", "verdict"}),
            troubled=frozenset(n for n, row in enumerate(rows) if row.fails),
        )


def _versions(endpoint: Endpoint) -> str:
    """ "Garage 2.5.0 → 2.6.0", or "MinIO 2026-02-12 → Garage 2.5.0"."""
    of = [group.series for group in (endpoint.old, endpoint.new) if group]
    names = [f"{display_system(one.system)} {short_version(one.version)}" for one in of]
    if len(of) == 2 and of[0].system == of[1].system:
        names[1] = short_version(of[1].version)
    return " → ".join(names)


def _cell(change: Change | None) -> str:
    if change is None:
        return EN_DASH
    old, new = (_figure(change.quantity, value) for value in (change.old, change.new))
    return old if old == new else f"{old} → {new}"


def _lines(endpoint: Endpoint, at_rtt_ms: float | None) -> Iterator[tuple[str, str]]:
    """What is to be said of an endpoint, and in which style; nothing where all is the same."""
    told = [
        change
        for change in _without_support(endpoint.changes)
        if change.gated and change.verdict is not Verdict.SAME and not change.is_merely_wide
    ]
    for verdict, some in groupby(told, key=lambda change: change.verdict):
        for sentence in _sentences(list(some), at_rtt_ms):
            yield sentence, _STYLES[verdict]
    aside = [change for change in endpoint.changes if not change.gated and change.has_changed]
    if aside:
        said = [
            f"{_title(change.quantity, at_rtt_ms)} {_difference(change)}{_unit(change.quantity)} "
            f"{change.verdict}"
            for change in aside
        ]
        yield f"not in the gate: {'; '.join(said)}.", "dim"
    sides = (endpoint.old_modes, endpoint.new_modes)
    if endpoint.verdict is not Verdict.SAME and max(map(len, sides)) > 1:
        old, new = (
            ", ".join(f"{100 * share:.0f} % {trips:.2f}" for share, trips in modes) or EN_DASH
            for modes in sides
        )
        yield f"modes {old} → {new}", "dim"


def _sentences(changes: Sequence[Change], at_rtt_ms: float | None) -> list[str]:
    """A sentence for each of `changes` of one endpoint, those of one reason in one."""
    told = [change_sentence(each, at_rtt_ms) for each in changes if each.difference]
    by_reason: dict[str | None, list[str]] = {}
    for change in changes:
        if change.difference is None:
            by_reason.setdefault(change.why, []).append(_title(change.quantity, at_rtt_ms))
    for why, titles in by_reason.items():
        told.append(f"{', '.join(titles)}: {Verdict.NOT_COMPARABLE}. {why}")
    return told


def _without_support(changes: Sequence[Change]) -> list[Change]:
    """`changes` without those that say of all requests what another one says of most."""
    verdicts = {change.quantity: change.verdict for change in changes}
    return [
        change
        for change in changes
        if change.quantity not in SUPPORTS
        or verdicts.get(SUPPORTS[change.quantity]) is not change.verdict
    ]


def _difference(change: Change) -> str:
    """ "+1.00 [+0.99, +1.01]"; without an interval where it is counted and not estimated."""
    if change.difference is None:
        return EN_DASH
    low, high = change.difference.ci95
    text, *bounds = (
        _signed(change.quantity, value) for value in (change.difference.estimate, low, high)
    )
    return text if low == high else f"{text} [{', '.join(bounds)}]"


def _signed(quantity: Quantity, value: float) -> str:
    text = _figure(quantity, abs(value))
    if not any(digit in text for digit in "123456789"):
        return text
    return f"{'+' if value > 0 else MINUS}{text}"


def _figure(quantity: Quantity, value: float | None) -> str:
    """A figure with about as many digits as it deserves, without its unit."""
    if value is None:
        return EN_DASH
    if quantity.unit == "share":
        return f"{100 * value:.3g} %"
    if quantity.unit == "ms":
        return format_ms(value)
    if quantity.unit == "round trips":
        return f"{value:.2f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}"


def _unit(quantity: Quantity) -> str:
    """The unit to write behind a figure of `quantity`, with a space before it."""
    return "" if quantity.unit in ("share", "round trips") else f" {quantity.unit}"


def _title(quantity: Quantity, at_rtt_ms: float | None) -> str:
    """What a quantity is called; latencies with the RTT they are at."""
    return quantity.title.format(at_rtt_ms=at_rtt_ms or 0.0)
