"""Sequential sampling: one measurement per pair, extended while its evidence does not decide.

A pair that looks right after the first round passes. One that looks wrong is sent more probes, in
rounds that grow, and after each round it is judged by all of its probes together: nothing that was
measured is replaced or left out. A link that is wrong a third of the time therefore stays wrong,
however often it is measured; one stall of the machine becomes a small share of what was sent.

A pair fails at once where no further probe could clear it (`Finding.is_final`): packets that were
early, since a machine only adds delay; a median that is off together with the quartile below it,
of two rounds at least; a count that chance does not explain; more late probes than the last round
could dilute.

**A machine that is late.** Probes that flew while what emulates the links was late itself show
nothing of the network's delays, and are in no delay that is judged (`prober.Probes.late`). So
rounds go on until enough others came back (`too_few`); where they never do, the machine is refused,
with that reason.

**Repeated tests.** The number of rounds is bounded. A right link fails only if it looks wrong after
every one of them, so it fails no more often than a single test at ``alpha`` would. Each round
is however another chance for a wrong link to pass. So after round k a p-value must reach k times
``alpha``, which is Bonferroni's correction applied to passing (`Round.alpha`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from wanlat.emulator.prober import Probes

_ENOUGH = 0.9  # of the probes of the first round that were to come back


@dataclass(frozen=True)
class Round:
    """After which round evidence is judged.

    ``number`` counts from 1; ``room`` is how many times the probes sent so far there are after the
    last round, 1 after the last one; ``size``: how many times those of the first were sent so far.
    """

    number: int = 1
    room: float = 1.0
    size: int = 1

    @property
    def is_again(self) -> bool:
        """Whether a round went before it."""
        return self.number > 1

    def alpha(self, alpha: float) -> float:
        """Return which p-value passes after this round, where ``alpha`` passes after the first."""
        return min(1.0, alpha * self.number)

    def is_beyond(self, share: float, allowed: float) -> bool:
        """Return whether a share of the probes stays above ``allowed`` if all others are right."""
        return share > allowed * self.room


def is_certain(p_value: float, alpha: float) -> bool:
    """Return whether a p-value is too small for chance, whatever further probes would show."""
    return p_value < alpha**2


@dataclass(frozen=True)
class Finding:
    """What is wrong with a pair, in words.

    ``is_final``: further probes would not clear it. ``is_lateness``: the machine was late, and
    nothing was learned of the network.
    """

    words: str
    is_final: bool = True
    is_lateness: bool = False


def is_only_late(findings: Sequence[Finding]) -> bool:
    """Return whether nothing is wrong but that the machine was late."""
    return bool(findings) and all(finding.is_lateness for finding in findings)


def too_few(probes: Probes, this: Round, enough: float = _ENOUGH) -> list[Finding]:
    """Return what is wrong where too many probes flew while the machine was late, else nothing."""
    late = int(probes.is_late.sum())
    if not late or probes.clean >= enough * (probes.sent - probes.lost) / this.size:
        return []
    words = (
        f"this machine held up {late} of {probes.sent} probes, so that too few are left to judge by"
    )
    return [Finding(words, is_final=False, is_lateness=True)]


@dataclass(frozen=True)
class Limits:
    """How long a measurement may be extended.

    ``sizes`` of the rounds by that of the first; ``pause_s`` times the round's number is waited
    before another; one that would, at the pace so far, end after ``longest_s`` is smaller, or none.
    """

    sizes: Sequence[int] = (1, 2, 4, 8, 16)
    pause_s: float = 0.0
    longest_s: float = math.inf


ONE_ROUND = Limits(sizes=(1,))
"""No extension: the verdict after the first round stands."""

K = TypeVar("K", bound=Hashable)
Judged = tuple[dict[str, Any], Sequence[Finding]]


@dataclass(frozen=True)
class Outcome:
    """What was measured of something, its entry, what is wrong, and after how many rounds."""

    evidence: Any
    entry: dict[str, Any]
    findings: Sequence[Finding]
    rounds: int

    @property
    def is_unclear(self) -> bool:
        """Whether something is wrong that further probes might clear."""
        return bool(self.findings) and not any(finding.is_final for finding in self.findings)

    @property
    def verdict(self) -> dict[str, Any]:
        """The entry's ``rounds``, ``reasons``, ``only_late`` and ``verdict``."""
        return {
            "rounds": self.rounds,
            "reasons": [finding.words for finding in self.findings],
            "only_late": is_only_late(self.findings),
            "verdict": "fail" if self.findings else "pass",
        }


def measure_in_rounds(
    keys: Sequence[K],
    send: Callable[[list[K], int], Mapping[K, Any]],
    judge: Callable[[K, Any, Round], Judged],
    limits: Limits,
) -> dict[K, Outcome]:
    """Measure every key until its evidence decides.

    ``send`` measures the given keys, with so many times the probes of the first round; the sum of
    what it returns is the evidence of both. ``judge`` returns an entry and what is wrong, by all
    evidence of a key.
    """
    started = time.monotonic()
    outcomes: dict[K, Outcome] = {}
    todo, so_far, size = list(keys), 0, limits.sizes[0]
    for number in range(1, len(limits.sizes) + 1 if todo else 1):
        round_started = time.monotonic()
        measured = send(todo, size)
        so_far += size
        this = Round(number, max(1.0, sum(limits.sizes) / so_far), so_far)
        for key in todo:
            before = outcomes.get(key)
            evidence = before.evidence + measured[key] if before else measured[key]
            outcomes[key] = Outcome(evidence, *judge(key, evidence, this), number)
        unclear = [key for key in todo if outcomes[key].is_unclear]
        if not unclear or number == len(limits.sizes):
            break
        now, pause_s = time.monotonic(), limits.pause_s * number
        pace_s = (now - round_started) / size * len(unclear) / len(todo)
        left_s = started + limits.longest_s - now - pause_s
        # A smaller round, where the machine is slow and there is time for no other.
        size = limits.sizes[number]
        if size * pace_s > left_s:
            size = math.floor(left_s / pace_s) if pace_s else 0
        if size < 1:
            break
        todo = unclear
        time.sleep(pause_s)
    return outcomes


def blame(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence on probes that the machine held up, and what to do; empty without any."""
    late, sent = (sum(entry.get(name) or 0 for entry in entries) for name in ("late", "sent"))
    if not late:
        return ""
    return f"This machine held up {late} of {sent} probes: end what else runs on it and try again."
