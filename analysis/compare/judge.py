"""Verdicts: all findings of one kind are judged together, so that many endpoints do not make one
of them an alarm by chance."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from wanlat.analysis.compare.difference import holm
from wanlat.analysis.compare.finding import Finding
from wanlat.analysis.compare.model import SUPPORTS, Change, Kind, Verdict
from wanlat.analysis.compare.thresholds import FALSE_ALARMS, Thresholds

MAY_BE_CHANCE = "It is beyond the threshold, and may be chance."
TOO_WIDE = "The interval reaches beyond the threshold."


@dataclass(frozen=True)
class Rules:
    """What the gate looks at, and how strict it is."""

    thresholds: Thresholds
    gate: Collection[Kind]
    strict: bool
    allow_missing: bool


def judge(findings: Sequence[Sequence[Finding]], rules: Rules) -> list[tuple[Change, ...]]:
    """The changes of each endpoint, from its findings."""
    adjusted = _adjusted([finding for each in findings for finding in each])
    return [
        tuple(_change(finding, adjusted.get(id(finding)), each, rules) for finding in each)
        for each in findings
    ]


def overall(changes: Sequence[Change]) -> Verdict:
    """The verdict on an endpoint, from those on the quantities that the gate looks at.

    The first of: worse, not comparable, better, not decided, same. What is missing counts only
    where nothing else answers it. A share of the requests whose
    interval is merely wide decides nothing here: of 40 requests none of which gained anything, up
    to 9 % may, and the round trips themselves are known to a hundredth.
    """
    found = {
        change.verdict
        for change in changes
        if change.gated
        and not is_merely_wide(change)
        and (change.missing or change.verdict is not Verdict.NOT_COMPARABLE)
    }
    order = (
        Verdict.WORSE,
        Verdict.NOT_COMPARABLE,
        Verdict.BETTER,
        Verdict.NOT_DECIDED,
    )
    return next((verdict for verdict in order if verdict in found), Verdict.SAME)


def is_merely_wide(change: Change) -> bool:
    """Whether a share or a figure that supports another is within its threshold, as far as is
    known: its interval is not."""
    return change.why == TOO_WIDE and (
        change.quantity.unit == "share" or change.quantity in SUPPORTS
    )


def _adjusted(findings: Sequence[Finding]) -> dict[int, float]:
    """The probability of each finding, corrected for all of its kind; by identity."""
    adjusted: dict[int, float] = {}
    for kind in Kind:
        of_kind = [f for f in findings if f.quantity.kind is kind and f.difference is not None]
        ps = [f.difference.p for f in of_kind if f.difference is not None]
        adjusted |= {id(f): p for f, p in zip(of_kind, holm(ps), strict=True)}
    return adjusted


def _change(
    finding: Finding, p_adjusted: float | None, siblings: Sequence[Finding], rules: Rules
) -> Change:
    difference, quantity = finding.difference, finding.quantity
    gated = quantity.kind in rules.gate
    if difference is None or finding.old is None or p_adjusted is None:
        missing = not _is_answered(finding, siblings, rules)
        return Change(
            quantity=quantity,
            old=finding.old,
            new=finding.new,
            difference=None,
            ci95=None,
            p=None,
            p_adjusted=None,
            threshold=None,
            verdict=Verdict.NOT_COMPARABLE,
            missing=missing,
            gated=gated,
            fails=gated and missing and not rules.allow_missing,
            why=finding.why,
        )
    threshold = rules.thresholds.of(quantity, finding.old)
    verdict, why = _verdict(finding, difference.estimate, difference.ci95, p_adjusted, threshold)
    undecided = verdict is Verdict.NOT_DECIDED and difference.estimate > threshold
    return Change(
        quantity=quantity,
        old=finding.old,
        new=finding.new,
        difference=difference.estimate,
        ci95=difference.ci95,
        p=difference.p,
        p_adjusted=p_adjusted,
        threshold=threshold,
        verdict=verdict,
        missing=False,
        gated=gated,
        fails=gated and (verdict is Verdict.WORSE or (rules.strict and undecided)),
        why=why,
    )


def _verdict(
    finding: Finding,
    estimate: float,
    ci95: tuple[float, float],
    p_adjusted: float,
    threshold: float,
) -> tuple[Verdict, str | None]:
    if threshold == 0 and estimate <= 0 and p_adjusted >= FALSE_ALARMS:
        return Verdict.SAME, None  # no interval is narrower than nothing
    if abs(estimate) > threshold:
        if finding.doubt is not None:
            return Verdict.NOT_DECIDED, finding.doubt
        if p_adjusted < FALSE_ALARMS:
            return (Verdict.WORSE if estimate > 0 else Verdict.BETTER), None
        return Verdict.NOT_DECIDED, MAY_BE_CHANCE
    if -threshold <= ci95[0] and ci95[1] <= threshold:
        return Verdict.SAME, None
    return Verdict.NOT_DECIDED, TOO_WIDE


def _is_answered(finding: Finding, siblings: Sequence[Finding], rules: Rules) -> bool:
    """Whether what could not be compared is no loss, because something else of its kind could.

    Of round trips there are two answers that share nothing, the slope and the chain of packets:
    one is enough, unless it is strict. A machine that was too busy for a straight line in one of
    the runs moved no packet. Of everything else, what was missing before may go on being missing.
    """
    if not (finding.missing_in_both or (_is_of_round_trips(finding) and not rules.strict)):
        return False
    return any(
        each.difference is not None
        for each in siblings
        if each.quantity.kind is finding.quantity.kind and each.quantity not in SUPPORTS
    )


def _is_of_round_trips(finding: Finding) -> bool:
    return finding.quantity.kind is Kind.ROUND_TRIPS
