"""What came of a drill, in sentences: the same on a terminal, on a chart and on a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from wanlat.analysis.names import EN_DASH, count, format_ms

if TYPE_CHECKING:
    from wanlat.analysis.drill.model import Claim, Drill, Durability, Outage

BAD = ("lost", "corrupt", "stale", "resurrected", "unexpected")
"""Verdicts on a key that fail a drill, the worst first."""

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "not decided"

_HOW_IT_ENDED = {
    "running": "The drill was killed",
    "interrupted": "The drill was interrupted",
    "failed": "The drill failed",
}
_ROUNDS = {"healed": "after the heal", "restarted": "after a full restart"}


def how_it_ended(drill: Drill) -> str | None:
    """How the drill ended and how far it had got, if it did not end as it should."""
    how = _HOW_IT_ENDED.get(drill.status)
    if how is None:
        return None
    reached = f" in the stage `{drill.reached}`" if drill.reached else ""
    why = f": {drill.reason.rstrip('.')}" if drill.reason else ""
    return f"{how}{reached}{why}"


def durability_sentence(durability: Durability) -> str:
    """The verdict, the counts it rests on, and what was read again to find them."""
    written = f"{count(durability.acknowledged, 'write')} acknowledged"
    done = [_ROUNDS.get(one.name, one.name) for one in durability.rounds if one.complete]
    begun = [_ROUNDS.get(one.name, one.name) for one in durability.rounds if one.present]
    if not begun:
        # Not to be taken for "none lost".
        return f"Durability {durability.verdict}: {written}, none of them read again"
    wrong = [f"{durability[verdict]} {verdict}" for verdict in BAD if durability[verdict]]
    also = [f"{durability[verdict]} {verdict}" for verdict in ("unread", "recovered")]
    also = [text for text in also if not text.startswith("0 ")]
    if not wrong:
        wrong = ["none found lost, corrupt, stale or resurrected"]
    read = f"read again {' and '.join(done)}" if done else f"not all read again {begun[0]}"
    missing = [text for text in _ROUNDS.values() if text not in done]
    if done and missing:
        read += f", but not all of them {' and '.join(missing)}"
    return f"Durability {durability.verdict}: {', '.join([written, *wrong, *also])} ({read})"


def outage_sentence(drill: Drill) -> str:
    """The longest outage and the time to recover."""
    outage = longest(drill)
    if drill.requests.empty:
        return "Nothing was measured"
    early = sum(outage.before_fault for outage in drill.outages)
    if outage is None and early:
        first = f"{count(early, 'outage')} that began before anything was broken, and no other"
    elif outage is None:
        first = "No outage"
    else:
        least = "" if outage.ended else "at least "
        of = f"{'reads' if outage.operation == 'read' else 'writes'} of {outage.client}"
        first = f"Longest outage {least}{seconds(outage.duration_s)} ({of})"
    if drill.recovered is None:
        return first
    if not drill.recovered:
        return f"{first}; not back to normal by the end"
    if not drill.recovery_s:
        return f"{first}; never out of the normal"
    healed = drill.recovery_after_heal_s
    after = "" if healed is None else f", {seconds(healed)} after the last heal"
    return f"{first}; back to normal {seconds(drill.recovery_s)} after the first fault{after}"


def bound_of(claim: Mapping[str, Any]) -> str:
    """What a claim asks for, as `reads ok ≥ 90%`."""
    figure = claim.get("availability")
    if not isinstance(figure, Mapping):
        return f"durability {claim.get('durability')}"
    signs = (("at_least", "≥"), ("at_most", "≤"))
    bounds = [f"{sign} {figure[key]}" for key, sign in signs if figure.get(key) is not None]
    return f"{figure.get('of')} ok {' and '.join(bounds)}"


def claims_sentence(claims: Iterable[Claim]) -> str:
    """How many claims held, did not, or could not be decided."""
    verdicts = Counter(claim.verdict for claim in claims)
    words = {HOLDS: "held", FAILS: "did not hold", UNDECIDED: "not decided"}
    return (
        f"Claims: {', '.join(f'{verdicts[v]} {word}' for v, word in words.items() if verdicts[v])}"
    )


def longest(drill: Drill) -> Outage | None:
    """The outage that lasted longest, of whichever client; the first of equals.

    One that began before any fault is no fault's work and does not count.
    """
    outages = [outage for outage in drill.outages if not outage.before_fault]
    return max(outages, key=lambda outage: outage.duration_s, default=None)


def seconds(value: float | None) -> str:
    """A duration for people, with about three digits."""
    if value is None:
        return EN_DASH
    places = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{places}f} s"


def latency(value_ms: float | None) -> str:
    """A latency with its unit, which is seconds from one on."""
    if value_ms is None:
        return EN_DASH
    return f"{format_ms(value_ms)} ms" if value_ms < 1000 else seconds(value_ms / 1000)


def percent(share: float | None) -> str:
    """`share` for people; never rounded to 0 or 100 % where it is neither. None: a dash."""
    if share is None:
        return EN_DASH
    value = 100 * share
    if value in (0.0, 100.0):
        return f"{value:.0f} %"
    for places in (1, 2, 3):
        text = f"{value:.{places}f}"
        if float(text) not in (0.0, 100.0):
            return f"{text} %"
    return "< 0.001 %" if value < 50 else "> 99.999 %"
