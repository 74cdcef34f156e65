"""The RTT steps of a study of round trips: what RTT the WAN links had, when, and as measured then.

An RTT step is one stay at one RTT. Every figure of round trips is against the RTT that was measured
during the step, never the one that was requested. What makes a number meaningless, and whether that
is so here, is in `why_meaningless`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from wanlat.analysis.names import count, listing
from wanlat.analysis.stats.modes import MIN_RTTS
from wanlat.bundle import documents
from wanlat.bundle.documents import RttStep, RttSteps
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_document
from wanlat.bundle.run import Run

EQUAL_WITHIN_MS = 1.0
EQUAL_WITHIN = 0.05
"""Links count as equal where their RTTs lie within 1 ms, or 5 % of the greatest, of each other."""

_NAMED_AT_MOST = 6
_DISTURBING = {
    "corrupt": "a damaged packet is lost",
    "duplicate": "a copy costs bytes and packets",
    "loss": "a lost packet is sent again after a timer, and no line explains its request",
    "rate": "a rate adds the time to send the bytes, which is in the intercept",
}
"""Impairments that do not forbid the number, and widen it or move the intercept."""


def rtt_steps(bundle: Run) -> tuple[RttStep, ...]:
    """Every RTT step of every system, in the order taken; none where none was reached.

    Raises BundleError where they are damaged.
    """
    document = read_document(bundle.directory, RttSteps)
    steps = () if document is None else tuple(document.rtt_steps)
    seen: set[tuple[str, int]] = set()
    for step in steps:
        if (step.system, step.rtt_step) in seen:
            raise BundleError(
                f"{bundle.directory / RttSteps.FILE} is damaged: RTT step {step.rtt_step} of "
                f"{step.system} is there twice, so its samples have two RTTs; run the study again."
            )
        seen.add((step.system, step.rtt_step))
    return steps


def counts(step: RttStep) -> bool:
    """Whether its samples count: its calibration passed and its RTT is known."""
    return step.verdict == "pass" and step.measured_rtt_ms is not None


def counting(steps: Sequence[RttStep], system: str) -> dict[int, float]:
    """The measured RTT, ms, of each step of `system` that counts, by its number."""
    return {
        step.rtt_step: step.measured_rtt_ms
        for step in steps
        if step.system == system and counts(step) and step.measured_rtt_ms is not None
    }


def rows_that_count(rows: pd.DataFrame, steps: Sequence[RttStep], system: str) -> pd.DataFrame:
    """The measured `rows` of one system that were taken in a step that counts."""
    known = list(counting(steps, system))
    return rows[rows["rtt_step"].isin(known).fillna(False).to_numpy(dtype=bool)]


def why_meaningless(bundle: Run, steps: Sequence[RttStep], system: str) -> str | None:
    """Why no number of round trips can be given of `system`, in a sentence; None if it can.

    That is where the links had jitter (a slope would be that of the longest of several draws),
    where there are fewer than three RTTs that count, and where links differ (then a request that
    crosses two of them has no one RTT to count in).
    """
    mine = [step for step in steps if step.system == system]
    if not mine:
        return "No RTT step was begun, so that there is no RTT to compare a latency with."
    if jitter_ms := max(step.requested_jitter_ms for step in mine):
        return (
            f"The links had a jitter of {jitter_ms:g} ms: a request that waits for several replies "
            "waits for the slowest, so a slope would say how jitter is drawn and not how many "
            "round trips are made. Measure with jitter 0."
        )
    good = [step for step in mine if counts(step)]
    rtts_ms = sorted({step.requested_rtt_ms for step in good})
    if len(rtts_ms) < MIN_RTTS:
        among = "" if len(good) == len(mine) else " among the RTT steps whose calibration passed"
        listed = f" ({', '.join(f'{rtt_ms:g}' for rtt_ms in rtts_ms)} ms)" if rtts_ms else ""
        few = ("There is no RTT", "There is only one RTT", "There are only two RTTs")[len(rtts_ms)]
        return (
            f"{few}{among}{listed}. Through two points goes a line whatever the truth; at least "
            "three are needed to contradict it."
        )
    site_of = bundle.manifest.site_of
    for step in good:
        between = [
            (pair.measured_rtt_ms, f"{pair.source} → {pair.destination}")
            for pair in step.pairs
            if pair.measured_rtt_ms is not None
            and site_of(pair.source) != site_of(pair.destination)
        ]
        (low_ms, near), (high_ms, far) = (
            min(between, default=(0, "")),
            max(between, default=(0, "")),
        )
        if high_ms - low_ms > max(EQUAL_WITHIN_MS, EQUAL_WITHIN * high_ms):
            return (
                f"The links are not equally long: when {step.requested_rtt_ms:g} ms were "
                f"requested, {near} had {low_ms:.1f} ms and {far} {high_ms:.1f} ms. A round trip "
                "is then no one length to count in."
            )
    return None


def remarks(bundle: Run, steps: Sequence[RttStep]) -> tuple[str, ...]:
    """What was left out of all figures, and what of the links is in them, in sentences."""
    notes = []
    rows = bundle.measured
    of_rows = list(zip(rows["system"], rows["rtt_step"].astype("float64"), strict=True))
    if out := {(step.system, step.rtt_step): step for step in steps if not counts(step)}:
        named = [
            f"{bundle.titles[step.system]} step {step.rtt_step + 1} at "
            f"{step.requested_rtt_ms:g} ms{_why_failed(step)}"
            for step in out.values()
        ]
        left_out = sum(step in out for step in of_rows)
        notes.append(
            f"{count(len(out), 'RTT step')} of {len(steps)} left out with "
            f"{count(left_out, 'request')}, because calibration failed: "
            f"{listing(named, _NAMED_AT_MOST)}."
        )
    known = {(step.system, step.rtt_step) for step in steps}
    if stray := sum(step not in known for step in of_rows):  # as of a run that was killed in a step
        notes.append(
            f"{count(stray, 'request')} left out: what RTT the links had is not on record."
        )
    topology = bundle.manifest.topology
    links = (topology and topology.links) or documents.Links()
    every = [links.default or {}, *links.pairs]
    if present := [name for name in _DISTURBING if any(link.get(name) for link in every)]:
        effects = "; ".join(_DISTURBING[name] for name in present)
        notes.append(f"The links have {' and '.join(present)}: {effects}.")
    return tuple(notes)


def _why_failed(step: RttStep) -> str:
    reasons = [why for pair in step.pairs if pair.verdict != "pass" for why in pair.reasons]
    return f" ({reasons[0].rstrip('.')})" if reasons else ""
