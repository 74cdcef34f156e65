"""The visits of a study of round trips: what RTT the WAN links had, when, and as measured then.

A visit is one stay at one RTT. Every figure of round trips is against the RTT that was measured
during the visit, never the one that was asked for. What makes a number meaningless, and whether
that is so here, is said by `why_meaningless`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.calibration import site_of_name
from wanlat.bundle.documents import RttSteps
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_document

MIN_RTTS = 3
"""Through two points goes a line whatever the truth: a third is needed to contradict it."""

EQUAL_WITHIN_MS = 1.0
EQUAL_WITHIN = 0.05
"""Links count as equal where their RTTs lie within 1 ms, or 5 % of the greatest, of each other."""

Span = tuple[int, int]


@dataclass(frozen=True)
class VisitPair:
    """An ordered pair of nodes as measured during a visit; ms, None: nothing came back."""

    source: str
    destination: str
    requested_rtt_ms: float | None
    measured_rtt_ms: float | None
    passed: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Visit:
    """One stay at one RTT. Instants are CLOCK_MONOTONIC, nanoseconds, as in the samples.

    `number` is unique within a system and in the order taken. `measured_rtt_ms` is the median over
    the pairs that lead from the asked node's site to another; None where nothing came back.
    `idle_ns` is when only the cluster's own background crossed the links. What a run that was
    killed had not reached is None.
    """

    system: str
    number: int
    requested_rtt_ms: float
    requested_jitter_ms: float
    measured_rtt_ms: float | None
    passed: bool
    pairs: tuple[VisitPair, ...]
    changed_ns: int | None
    idle_ns: Span | None
    calibrated_ns: Span | None
    begun_ns: int | None
    ended_ns: int | None

    @property
    def counts(self) -> bool:
        """Whether its samples count: its calibration passed and its RTT is known."""
        return self.passed and self.measured_rtt_ms is not None


@dataclass(frozen=True)
class Visits:
    """rtt_steps.json: every visit of every system, in the order taken."""

    all: tuple[Visit, ...]

    def of(self, system: str) -> tuple[Visit, ...]:
        """Those of one system."""
        return tuple(visit for visit in self.all if visit.system == system)

    def counting(self, system: str) -> tuple[Visit, ...]:
        """Those of one system whose samples count."""
        return tuple(visit for visit in self.of(system) if visit.counts)

    def rtt_ms(self, system: str) -> dict[int, float]:
        """The measured RTT, milliseconds, of each visit of `system` that counts, by its number."""
        return {
            visit.number: visit.measured_rtt_ms
            for visit in self.counting(system)
            if visit.measured_rtt_ms is not None
        }


def read_visits(bundle: Bundle) -> Visits | None:
    """The visits of `bundle`; None of a study without. Raises BundleError where they are damaged.

    A study of round trips that never came to a visit has none, and that is not None.
    """
    found = read_document(bundle.directory, RttSteps)
    if found is not None:
        return _parsed(found.model_dump(mode="json"), bundle.directory / RttSteps.FILE)
    return Visits(()) if is_of_round_trips(bundle) else None


def is_of_round_trips(bundle: Bundle) -> bool:
    """Whether the bundle's study asks for round trips."""
    study = bundle.manifest.get("study")
    return isinstance(study, Mapping) and bool(study.get("round_trips"))


def why_meaningless(bundle: Bundle, visits: Visits, system: str) -> str | None:
    """Why no number of round trips can be given of `system`, in a sentence; None if it can.

    That is where the links had jitter (a slope would be that of the longest of several draws),
    where there are fewer than three RTTs that count, and where links differ (then a request that
    crosses two of them has no one RTT to count in).
    """
    mine = visits.of(system)
    if not mine:
        return "No visit was begun, so that there is no RTT to hold a latency against."
    if jitter_ms := max(visit.requested_jitter_ms for visit in mine):
        return (
            f"The links had a jitter of {jitter_ms:g} ms: a request that waits for several replies "
            "waits for the slowest, so a slope would say how jitter is drawn and not how many "
            "round trips are made. Measure with jitter 0."
        )
    counting = visits.counting(system)
    rtts_ms = sorted({visit.requested_rtt_ms for visit in counting})
    if len(rtts_ms) < MIN_RTTS:
        return (
            f"{_points(rtts_ms, all_of_them=len(counting) == len(mine))} Through two points goes "
            "a line whatever the truth; at least three are needed to contradict it."
        )
    return _why_unequal(counting, site_of_name(bundle.manifest.get("topology")))


def _points(rtts_ms: Sequence[float], *, all_of_them: bool) -> str:
    """How many RTTs there are to draw a line through."""
    of_what = "" if all_of_them else " among the visits whose calibration passed"
    listed = ", ".join(f"{rtt_ms:g}" for rtt_ms in rtts_ms)
    if not rtts_ms:
        return f"There is no RTT{of_what}."
    if len(rtts_ms) == 1:
        return f"There is only one RTT{of_what} ({listed} ms)."
    return f"There are only {len(rtts_ms)} RTTs{of_what} ({listed} ms)."


def _why_unequal(visits: Sequence[Visit], site_of: Callable[[str], str]) -> str | None:
    for visit in visits:
        between = [
            pair
            for pair in visit.pairs
            if pair.measured_rtt_ms is not None
            and site_of(pair.source) != site_of(pair.destination)
        ]
        if not between:
            continue
        near = min(between, key=lambda pair: pair.measured_rtt_ms or 0.0)
        far = max(between, key=lambda pair: pair.measured_rtt_ms or 0.0)
        low_ms, high_ms = near.measured_rtt_ms or 0.0, far.measured_rtt_ms or 0.0
        if high_ms - low_ms > max(EQUAL_WITHIN_MS, EQUAL_WITHIN * high_ms):
            return (
                f"The links are not equally long: when {visit.requested_rtt_ms:g} ms were asked "
                f"for, {near.source} → {near.destination} had {low_ms:.1f} ms and {far.source} → "
                f"{far.destination} {high_ms:.1f} ms. A round trip is then no one length to count "
                "in."
            )
    return None


def _parsed(document: Mapping[str, Any], path: Path) -> Visits:
    try:
        visits = tuple(_visit(entry) for entry in document["rtt_steps"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BundleError(
            f"{path} is damaged: {type(error).__name__} {error}. Without the visits no latency "
            "can be held against an RTT; run the study again."
        ) from error
    seen: set[tuple[str, int]] = set()
    for visit in visits:
        if (visit.system, visit.number) in seen:
            raise BundleError(
                f"{path} is damaged: visit {visit.number} of {visit.system} is there twice, so "
                "its samples have two RTTs; run the study again."
            )
        seen.add((visit.system, visit.number))
    return Visits(visits)


def _visit(entry: Mapping[str, Any]) -> Visit:
    pairs = tuple(_pair(pair) for pair in entry.get("pairs") or ())
    measured_ms = _number(entry.get("measured_rtt_ms"))
    if measured_ms is None and pairs:
        known = [pair.measured_rtt_ms for pair in pairs if pair.measured_rtt_ms is not None]
        measured_ms = median(known) if known else None
    return Visit(
        system=str(entry["system"]),
        number=int(entry["rtt_step"]),
        requested_rtt_ms=float(entry["requested_rtt_ms"]),
        requested_jitter_ms=float(entry.get("requested_jitter_ms") or 0.0),
        measured_rtt_ms=measured_ms,
        passed=_passed(entry.get("verdict", "pass")),
        pairs=pairs,
        changed_ns=_instant(entry.get("changed_ns")),
        idle_ns=_span(entry.get("idle_ns")),
        calibrated_ns=_span(entry.get("calibrated_ns")),
        begun_ns=_instant(entry.get("begun_ns")),
        ended_ns=_instant(entry.get("ended_ns")),
    )


def _pair(entry: Mapping[str, Any]) -> VisitPair:
    return VisitPair(
        source=str(entry["from"]),
        destination=str(entry["to"]),
        requested_rtt_ms=_number(entry.get("requested_rtt_ms")),
        measured_rtt_ms=_number(entry.get("measured_rtt_ms")),
        passed=_passed(entry.get("verdict", "pass")),
        reasons=tuple(str(reason) for reason in entry.get("reasons") or ()),
    )


def _passed(verdict: object) -> bool:
    if verdict not in ("pass", "fail"):
        raise ValueError(f"verdict is {verdict!r}, neither pass nor fail")
    return verdict == "pass"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _instant(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _span(value: object) -> Span | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"{value!r} is not [begin, end]")
    return int(value[0]), int(value[1])
