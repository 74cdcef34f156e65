"""A comparison in words."""

from __future__ import annotations

from collections.abc import Sequence

from wanlat.analysis.compare.model import (
    CHAINS,
    LATENCY_AT,
    MODES,
    SUPPORTS,
    Change,
    Compared,
    Quantity,
    Verdict,
)
from wanlat.analysis.names import display_system, format_ms, short_version
from wanlat.analysis.placement import with_placement

MINUS = "\N{MINUS SIGN}"
_NOTHING = "–"


def name_of(compared: Compared) -> str:
    """ "Garage GetObject, remote"."""
    series = compared.new or compared.old
    system = f"{display_system(series.system)} " if series else ""
    return with_placement(f"{system}{compared.endpoint}", compared.placement)


def versions_of(compared: Compared) -> str:
    """ "Garage 2.5.0 → 2.6.0", or "MinIO 2026-02-12 → Garage 2.5.0"."""
    old, new = compared.old, compared.new
    if old is None or new is None:
        one = old or new
        return f"{display_system(one.system)} {short_version(one.version)}" if one else ""
    first = f"{display_system(old.system)} {short_version(old.version)}"
    name = f"{display_system(new.system)} " if new.system != old.system else ""
    return f"{first} → {name}{short_version(new.version)}"


def figure(quantity: Quantity, value: float | None) -> str:
    """A figure with about as many digits as it deserves, without its unit."""
    if value is None:
        return _NOTHING
    if quantity.unit == "share":
        return f"{100 * value:.3g} %"
    if quantity.unit == "ms":
        return format_ms(value)
    if quantity.unit == "round trips":
        return f"{value:.2f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}"


def signed(quantity: Quantity, value: float) -> str:
    """The same of a difference: "+1.00", "−3.20"."""
    text = figure(quantity, abs(value))
    return (
        text
        if not any(digit in text for digit in "123456789")
        else (f"{'+' if value > 0 else MINUS}{text}")
    )


def title_of(quantity: Quantity, at_rtt_ms: float | None) -> str:
    """What a quantity is called; latencies with the RTT they are at."""
    if quantity is LATENCY_AT and at_rtt_ms is not None:
        return f"latency at {at_rtt_ms:g} ms"
    return quantity.title


def change_sentence(change: Change, at_rtt_ms: float | None = None) -> str:
    """ "round trips 1.00 → 2.00, +1.00 [+0.99, +1.01]: worse (threshold 0.25)"."""
    quantity = change.quantity
    title = title_of(quantity, at_rtt_ms)
    if change.difference is None:
        return f"{title}: {change.verdict}. {change.why or ''}".rstrip()
    if quantity in (MODES, CHAINS):
        figures = f"{title} {difference_of(change)}"
    else:
        old, new = (figure(quantity, value) for value in (change.old, change.new))
        figures = f"{title} {old} → {new}{unit_of(quantity)}, {difference_of(change)}"
    limit = ""
    if change.threshold:
        limit = f" (threshold {figure(quantity, change.threshold)}{unit_of(quantity)})"
    why = f". {change.why}" if change.why else ""
    return f"{figures}: {change.verdict}{limit}{why}"


def difference_of(change: Change) -> str:
    """ "+1.00 [+0.99, +1.01]"; without an interval where it is counted and not estimated."""
    if change.difference is None:
        return _NOTHING
    text = signed(change.quantity, change.difference)
    if change.ci95 is None or change.ci95[0] == change.ci95[1]:
        return text
    low, high = (signed(change.quantity, bound) for bound in change.ci95)
    return f"{text} [{low}, {high}]"


def sentences(changes: Sequence[Change], at_rtt_ms: float | None) -> list[str]:
    """A sentence for each of `changes` of one endpoint, those of one reason in one."""
    told: list[str] = []
    by_reason: dict[str, list[str]] = {}
    for change in changes:
        if change.difference is None and change.why:
            by_reason.setdefault(change.why, []).append(title_of(change.quantity, at_rtt_ms))
        else:
            told.append(change_sentence(change, at_rtt_ms))
    for why, titles in by_reason.items():
        told.append(f"{', '.join(titles)}: {Verdict.NOT_COMPARABLE}. {why}")
    return told


def without_support(changes: Sequence[Change]) -> list[Change]:
    """`changes` without those that say of all requests what another one says of most."""
    verdicts = {change.quantity: change.verdict for change in changes}
    return [
        change
        for change in changes
        if verdicts.get(SUPPORTS.get(change.quantity, change.quantity)) is not change.verdict
        or change.quantity not in SUPPORTS
    ]


def failure_sentence(compared: Compared, at_rtt_ms: float | None = None) -> str:
    """Why the gate does not let an endpoint pass."""
    name = name_of(compared)
    if compared.verdict is Verdict.GONE:
        return f"{name}: gone. OLD measured it and NEW did not."
    reasons = sentences(
        without_support([change for change in compared.changes if change.fails]), at_rtt_ms
    )
    return f"{name}: {'; '.join(reason.rstrip('.') for reason in reasons)}."


def unit_of(quantity: Quantity) -> str:
    """The unit to write behind a figure of `quantity`, with a space before it."""
    return "" if quantity.unit in ("share", "round trips") else f" {quantity.unit}"
