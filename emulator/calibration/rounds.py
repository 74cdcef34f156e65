"""Sequential sampling: one measurement per pair, extended while its evidence does not decide.

A pair that looks right after the first round passes. One that looks wrong is sent more probes, in
rounds that grow, and after each round it is judged by all of its probes together: nothing that was
measured is replaced or left out. A link that is wrong a third of the time therefore stays wrong,
however often it is measured; one stall of the machine becomes a small share of what was sent.

A pair fails at once where no further probe could clear it (`Finding.is_final`): packets that were
early, since a machine only adds delay; a median that is off together with the quartile below it, of
two rounds at least, since a stall may be as long as one; a count that chance does not explain; more
late probes than the last round could dilute.

**Repeated tests.** The number of rounds is bounded. A right link fails only if it looks wrong after
every one of them, so it fails no more often than a single test at ``alpha`` would say. Each round
is however another chance for a wrong link to pass. So after round k a p-value must reach k times
``alpha``, which is Bonferroni's correction applied to passing (`Round.alpha`).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

SIZES = (1, 1, 2, 4, 8)
"""Of the rounds, in units of the first one: 16 times its probes in all."""

_EVERY_S = 0.01  # between two beats of the stall clock
_STALL_MS = 50.0  # a shorter one is the scheduler's turn-taking


@dataclass(frozen=True)
class Round:
    """After which round evidence is judged.

    ``number`` counts from 1; ``room`` is how many times the probes sent so far there are after the
    last round, 1 after the last one.
    """

    number: int = 1
    room: float = 1.0

    @property
    def is_again(self) -> bool:
        """Return whether a round went before it."""
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
    """What is wrong with a pair, in words. ``is_final``: further probes would not clear it."""

    words: str
    is_final: bool = True


class Evidence(Protocol):
    """What rounds measured of a pair: the sum of two is the evidence of both."""

    def __add__(self, other: Self, /) -> Self: ...


K = TypeVar("K", bound=Hashable)
E = TypeVar("E", bound=Evidence)
Judged = tuple[dict[str, Any], Sequence[Finding]]


@dataclass(frozen=True)
class Limits:
    """How long a measurement may be extended.

    ``sizes`` of the rounds by that of the first; ``pause_s`` times the round's number is waited
    before another; none begins that would, at the pace so far, end after ``longest_s``.
    """

    sizes: Sequence[int] = SIZES
    pause_s: float = 0.0
    longest_s: float = math.inf


ONE_ROUND = Limits(sizes=(1,))
"""No extension: the verdict after the first round stands."""


def measure_in_rounds(
    keys: Sequence[K],
    send: Callable[[list[K], int], Mapping[K, E]],
    judge: Callable[[K, E, Round], Judged],
    limits: Limits,
    check: Callable[[], object] = lambda: None,
) -> dict[K, dict[str, Any]]:
    """Measure every key until its evidence decides; return their entries.

    ``send`` measures the given keys, with so many times the probes of the first round; ``judge``
    returns an entry and what is wrong, by all evidence of a key. Entries get ``rounds`` (how many
    the verdict rests on), ``stall_ms`` (the longest stall of this process meanwhile; it excuses
    nothing), ``reasons`` and ``verdict`` (``pass``, ``fail``). ``check`` is called between rounds
    and may raise.
    """
    begun = time.monotonic()
    evidence: dict[K, E] = {}
    entries: dict[K, dict[str, Any]] = {}
    todo, total = list(keys), sum(limits.sizes)
    sent = len(todo)
    stall_ms = dict.fromkeys(todo, 0.0)
    for number, size in enumerate(limits.sizes, start=1):
        round_begun = time.monotonic()
        with StallClock() as clock:
            measured = send(todo, size)
        this = Round(number, total / sum(limits.sizes[:number]))
        unclear = []
        for key in todo:
            evidence[key] = evidence[key] + measured[key] if key in evidence else measured[key]
            stall_ms[key] = max(stall_ms[key], clock.longest_ms)
            entry, findings = judge(key, evidence[key], this)
            entries[key] = entry | {
                "rounds": number,
                "stall_ms": round(stall_ms[key], 1),
                "reasons": [finding.words for finding in findings],
                "verdict": "fail" if findings else "pass",
            }
            if findings and not any(finding.is_final for finding in findings):
                unclear.append(key)
        todo = unclear
        if not todo or number == len(limits.sizes):
            break
        now, pause_s = time.monotonic(), limits.pause_s * number
        share = len(todo) / sent
        next_s = (now - round_begun) * limits.sizes[number] / size * share
        sent = len(todo)
        if now + pause_s + next_s > begun + limits.longest_s:
            break
        time.sleep(pause_s)
        check()
    return entries


@dataclass
class StallClock:
    """How long this process stood still at most, in ms, by a thread that only sleeps.

    A context manager. It tells a machine that was busy from a link that is wrong, for people who
    read a failure; no verdict depends on it.
    """

    longest_ms: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> StallClock:
        self._thread = threading.Thread(target=self._sleep, name="stall clock", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _sleep(self) -> None:
        before, over = time.monotonic(), False
        while not over:
            over = self._over.wait(_EVERY_S)
            now = time.monotonic()
            self.longest_ms = max(self.longest_ms, 1000 * (now - before - _EVERY_S))
            before = now


def blame(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence on how long the machine stalled while these pairs were measured."""
    stall_ms = max((entry.get("stall_ms", 0.0) for entry in entries), default=0.0)
    stalled = f"Meanwhile this machine stalled for up to {stall_ms:.0f} ms"
    if stall_ms < _STALL_MS:
        return f"{stalled}."
    return f"{stalled}: end what else runs on it and try again."
