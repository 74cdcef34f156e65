"""Why a drill did not pass."""

from __future__ import annotations

from wanlat.analysis.drill.claims import DOES_NOT_HOLD
from wanlat.analysis.drill.model import Drill
from wanlat.analysis.names import count

WRONG_BYTES = ("checksum mismatch", "length mismatch")
"""How the probe says that the bytes of an answer are not those that were written."""

_ENDED = {
    "running": "The drill was killed",
    "interrupted": "The drill was interrupted",
    "failed": "The drill failed",
}


def failures_of(drill: Drill) -> tuple[str, ...]:
    """Everything that did not hold, a sentence each, the worst first; () of a drill that passed."""
    durability = drill.durability
    found = []
    if (how := _ENDED.get(drill.status)) is not None:
        found.append(f"{how}{f': {drill.reason.rstrip(chr(46))}' if drill.reason else ''}.")
    if durability.verdict != "pass":
        found.append(f"Durability is {durability.verdict}: {durability.why}.")
    if drill.status == "complete" and drill.requests.empty:
        found.append("Not one request is recorded.")
    if wrong := wrong_reads(drill):
        found.append(f"{count(wrong, 'read')} answered with other bytes than were written.")
    if durability.unledgered:
        found.append(f"{count(durability.unledgered, 'write')} sent that the ledger does not have.")
    found += [
        f"“{claim.claim}” does not hold: {claim.evidence}."
        for claim in drill.claims
        if claim.verdict == DOES_NOT_HOLD
    ]
    told = drill.bundle.manifest.get("failures")
    if isinstance(told, list) and told:
        return (*found, *(str(text) for text in told))
    found += [
        f"{again.subject} is not what it was before its fault."
        for again in drill.recalibrations
        if not again.passed
    ]
    return tuple(found)


def wrong_reads(drill: Drill) -> int:
    """How many reads during the phases got bytes that are not the object's."""
    requests = drill.requests
    errors = requests.loc[requests["operation"] == "read", "error"].fillna("").astype(str)
    return sum(text.startswith(WRONG_BYTES) for text in errors)
