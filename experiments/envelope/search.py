"""How far a promise holds: bisection on verdicts of known confidence.

A search requests a verdict on a network (`Question`), and gets it; from whom it does not
know: a cluster, or what stands in for one in a test. One trial may go either way by chance, so a
verdict is that of a sequential test (Wald 1945, Ann. Math. Statist. 16), which stops when it knows.

Searches take turns in shuffled order, so that the order of RTTs is no order in time. When all are
done, both ends of every limit are tried again: a verdict that is another then is drift and no
distance. At last each limit is approached from beyond: a cluster that does not hold there what it
held when it came from near has hysteresis.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from wanlat.bundle.documents import Network

Name = Literal["rtt", "jitter", "loss"]
Verdict = Literal["holds", "fails", "undecided"]

_STRIDE = 4
"""Of a search from a guess: the first step, in precisions; each further one is twice as long."""
T = TypeVar("T")


def moved(network: Network, axis: Name, value: float) -> Network:
    """Return a network with another value of an axis; a jitter is never more than the RTT."""
    values = network.model_dump()
    if axis == "rtt":
        values |= {"rtt_ms": value, "jitter_ms": min(network.jitter_ms, value)}
    elif axis == "jitter":
        values |= {"rtt_ms": max(network.rtt_ms, value), "jitter_ms": value}
    else:
        values |= {"loss": value}
    return Network(**values)


@dataclass(frozen=True)
class Axis:
    """A quantity that is searched, from ``low``, which is more than 0, to ``high``.

    ``precision``: a limit is found when its two ends differ by that share. ``levels``: values at
    which the limit of the RTT is found, too: the frontier between both.
    """

    name: Name
    low: float
    high: float
    precision: float
    levels: tuple[float, ...] = ()

    def is_found(self, inside: float, outside: float) -> bool:
        """Whether two ends are near enough to each other."""
        return outside <= inside * (1 + self.precision)


@dataclass(frozen=True)
class Question:
    """Does the promise hold on this network, coming from near, or right ``after`` another one?"""

    network: Network
    after: Network | None = None


@dataclass(frozen=True)
class SequentialTest:
    """Whether trials hold with a probability of ``holds`` or more, or of ``fails`` or less.

    Either verdict is wrong with a probability of ``error``. In between it may be either; after
    ``most`` trials it is left undecided.
    """

    holds: float = 0.95
    fails: float = 0.5
    error: float = 0.05
    most: int = 30

    def verdict(self, held: Sequence[bool]) -> Verdict | None:
        """Return the verdict of trials; None: another one is needed."""
        of_held = math.log(self.holds / self.fails)
        of_failed = math.log((1 - self.holds) / (1 - self.fails))
        evidence = sum(of_held if is_held else of_failed for is_held in held)
        enough = math.log((1 - self.error) / self.error)
        if abs(evidence) >= enough:
            return "holds" if evidence > 0 else "fails"
        return "undecided" if len(held) >= self.most else None

    def trials(self, held: bool, astray: int = 0) -> int:
        """Return how many trials a verdict takes; the first ``astray`` of them go the other way."""
        results = [not held] * astray
        while self.verdict(results) is None:
            results.append(held)
        return len(results)


@dataclass(frozen=True)
class Limit:
    """How far the promise holds along an axis, with the rest of the network ``at`` something.

    It holds at ``inside`` (None: nowhere on the axis) and not at ``outside`` (None: everywhere).
    ``changed``: values at which it was tried twice, with two verdicts. ``back``: the greatest value
    at which it held coming from beyond (None: at none); known where ``is_approached``.
    """

    axis: Axis
    at: Network
    inside: float | None
    outside: float | None
    changed: tuple[float, ...] = ()
    back: float | None = None
    is_approached: bool = False

    @property
    def estimate(self) -> float | None:
        """The middle of both ends; None where the axis has no limit between its own."""
        if self.inside is None or self.outside is None:
            return None
        return math.sqrt(self.inside * self.outside)

    @property
    def has_hysteresis(self) -> bool:
        """Whether a cluster that comes from beyond holds less than one that comes from near."""
        if not self.is_approached or self.inside is None:
            return False
        return self.back is None or not self.axis.is_found(self.back, self.inside)


Search = Generator[Question, bool, T]
"""Yields questions, is sent whether the promise holds, and returns what it found."""
Decide = Callable[[Question], bool]
Answer = tuple[Question, bool]


@dataclass(frozen=True)
class _Line:
    """The values of an axis, with the rest of the network and the approach as they are."""

    axis: Axis
    at: Network
    after: Network | None = None

    def holds(self, value: float) -> Search[bool]:
        return (yield Question(moved(self.at, self.axis.name, value), self.after))

    def bisected(self, inside: float, outside: float) -> Search[tuple[float, float]]:
        """Bring two ends together, by ratios: the axis spans orders of magnitude."""
        while not self.axis.is_found(inside, outside):
            middle = math.sqrt(inside * outside)
            if (yield from self.holds(middle)):
                inside = middle
            else:
                outside = middle
        return inside, outside

    def strided(self, start: float, *, up: bool) -> Search[tuple[float | None, float | None]]:
        """Return both ends of the first step, away from ``start``, of which the verdict differs."""
        axis, here = self.axis, start
        end, stride = (axis.high if up else axis.low), (1 + axis.precision) ** _STRIDE
        while here != end:
            there = min(here * stride, end) if up else max(here / stride, end)
            if (yield from self.holds(there)) is not up:
                return (here, there) if up else (there, here)
            here, stride = there, stride**2
        return (here, None) if up else (None, here)

    def around(self, start: float, *, up: bool) -> Search[tuple[float | None, float | None]]:
        """Return both ends of the limit that lies above ``start``, or below."""
        inside, outside = yield from self.strided(start, up=up)
        if inside is None or outside is None:
            return inside, outside
        return (yield from self.bisected(inside, outside))


def along(axis: Axis, at: Network, guess: float | None = None) -> Search[Limit]:
    """Find the limit along an axis; from a ``guess`` on, where there is one."""
    line = _Line(axis, at)
    if guess is not None:
        guess = min(max(guess, axis.low), axis.high)
        up = yield from line.holds(guess)
        return Limit(axis, at, *(yield from line.around(guess, up=up)))
    # Twice, as nothing is searched where it does not hold: one verdict may be wrong.
    if not ((yield from line.holds(axis.low)) or (yield from line.holds(axis.low))):
        return Limit(axis, at, None, axis.low)
    if (yield from line.holds(axis.high)):
        return Limit(axis, at, axis.high, None)
    return Limit(axis, at, *(yield from line.bisected(axis.low, axis.high)))


def confirmed(limit: Limit, chance: random.Random) -> Search[Limit]:
    """Try both ends again, in any order; where one is another now, find the limit as it is now."""
    line = _Line(limit.axis, limit.at)
    expected = [(limit.inside, True), (limit.outside, False)]
    for value, held in chance.sample(expected, len(expected)):
        if value is not None and (yield from line.holds(value)) is not held:
            inside, outside = yield from line.around(value, up=not held)
            return replace(limit, inside=inside, outside=outside, changed=(value,))
    return limit


def approached(limit: Limit) -> Search[Limit]:
    """Try from beyond; where the promise does not hold then, find out where it does again."""
    if limit.inside is None or limit.outside is None:
        return limit
    axis = limit.axis
    beyond = min(limit.outside * (1 + axis.precision) ** _STRIDE, axis.high)
    line = _Line(axis, limit.at, moved(limit.at, axis.name, beyond))
    back: float | None = limit.inside
    if not (yield from line.holds(limit.inside)):
        back, _ = yield from line.around(limit.inside, up=False)
    return replace(limit, back=back, is_approached=True)


def in_turns(searches: Sequence[Search[T]], decide: Decide, chance: random.Random) -> list[T]:
    """Carry out searches beside each other, a question of each at a time, in shuffled order."""
    results: dict[int, T] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(searches)))
    while answers:
        for number in chance.sample([*answers], len(answers)):
            try:
                answers[number] = decide(searches[number].send(answers[number]))
            except StopIteration as end:
                results[number] = end.value
                del answers[number]
    return [results[number] for number in sorted(results)]


@dataclass(frozen=True)
class SearchPlan:
    """The axes that are searched, the RTT first.

    Where one is searched, the others are at their least: no jitter, no loss, the RTT's ``low``.
    """

    axes: tuple[Axis, ...]

    @property
    def near(self) -> Network:
        """The network on which most is promised."""
        return Network(rtt_ms=self.axes[0].low)

    def rehearsed(
        self, chance: random.Random, known: Sequence[bool], supposed: Decide
    ) -> list[Answer]:
        """Return a search's questions with their answers: those known, then those supposed."""
        answers: list[Answer] = []

        def decide(question: Question) -> bool:
            place = len(answers)
            held = known[place] if place < len(known) else supposed(question)
            answers.append((question, held))
            return held

        self.find(decide, chance)
        return answers

    def find(
        self,
        decide: Decide,
        chance: random.Random,
        note: Callable[[Sequence[Limit]], object] = lambda _: None,
    ) -> list[Limit]:
        """Return every limit: of each axis in their order, then of the RTT at levels of others.

        ``note`` gets what is known after each stage.
        """
        limits = in_turns([along(axis, self.near) for axis in self.axes], decide, chance)
        note(limits)
        rtt = limits[0]
        guess = rtt.estimate or rtt.inside
        ways = [
            along(rtt.axis, moved(self.near, limit.axis.name, level), guess)
            for limit in limits
            for level in limit.axis.levels
            if guess is not None  # else it does not hold even near
        ]
        limits += in_turns(ways, decide, chance)
        note(limits)
        limits = in_turns([confirmed(limit, chance) for limit in limits], decide, chance)
        note(limits)
        limits = in_turns([approached(limit) for limit in limits], decide, chance)
        note(limits)
        return limits
