"""The pass that counts: what is lost, doubled, damaged and overtaken on the way there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wanlat.emulator.calibration.counts import (
    UNNOTICED_CORRUPTION,
    corrupted_part,
    duplicated_part,
    inflation,
    lost_part,
    mean_burst,
    p_value,
    p_value_between,
)
from wanlat.emulator.calibration.law import path_law
from wanlat.emulator.calibration.pairs import Pair, batches, slices
from wanlat.emulator.calibration.rounds import Finding, Round, is_certain
from wanlat.emulator.calibration.tolerance import Tolerance
from wanlat.emulator.lab import Lab
from wanlat.emulator.stream import Delivery, Stream
from wanlat.topologies.resolve import Impairment, Plan

Tell = Callable[[float], None]

_STEP_S = 0.0002  # between two datagrams of the whole lab
_FEW = 100  # show whether order is kept
_TOGETHER = 10  # so that a flow's packets follow each other more closely than their jitter
_BURSTS_OFF = 0.1  # of the mean length, allowed beyond what chance allows
_BURST_DEVIATIONS = 4  # what chance allows
_CERTAIN_DEVIATIONS = 2  # beyond that no chance, and no probe more, explains it
_LATE_S = 0.15


def delivery_pass(
    lab: Lab,
    stream: Stream,
    requested: Plan,
    pairs: Sequence[Pair],
    samples: int,
    tell: Tell,
    *,
    size: int = 1,
) -> dict[Pair, Delivery]:
    """Send one flow of packets a pair, close together, with every impairment in force.

    ``samples`` of them where loss, duplication, corruption or overtaking are asked for, few where
    only the order matters; ``size`` times that.
    """
    many = [pair for pair in pairs if is_counted(requested.path(*pair))]
    few = [pair for pair in pairs if pair not in set(many)]
    # Bursts are runs of a link's packets, so each link has to be a pair's own.
    turns = [(batch, samples * size) for batch in batches(requested, many, at_most=_TOGETHER)]
    turns += [(batch, _FEW * size) for batch in slices(few, _TOGETHER)]
    found: dict[Pair, Delivery] = {}
    for number, (batch, count) in enumerate(turns):
        tell(number / len(turns))
        longest_ns = max(sum(step.range_ns[1] for step in lab.plan.path(*pair)) for pair in batch)
        patience_s = 1.2 * longest_ns / 1e9 + _LATE_S
        found |= stream.send(batch, count, _STEP_S * len(batch), patience_s)
    tell(1.0)
    return found


def is_counted(steps: Sequence[Impairment]) -> bool:
    """Return whether a path is asked to deliver other packets than those that were sent."""
    return any(
        step.loss_probability or step.duplicate or step.corrupt or step.overtake for step in steps
    )


def delivery_figures(
    steps: Sequence[Impairment], delivery: Delivery, bare_ms: float
) -> dict[str, Any]:
    """Return what was asked for and what was counted, one way."""
    bursts = delivery.bursts
    overtake = max((step.overtake for step in steps), default=0.0)
    return {
        "sent": delivery.sent,
        "lost": delivery.lost,
        "duplicated": delivery.duplicated,
        "damaged": delivery.damaged,
        "overtaken": delivery.overtaken,
        "undelayed": _undelayed(steps, delivery, bare_ms) if overtake else 0,
        "mean_burst": float(bursts.mean()) if bursts.size else None,
        "requested": {
            "loss": lost_part(steps),
            "duplicate": duplicated_part(steps),
            "corrupt": corrupted_part(steps),
            "overtake": overtake,
            "mean_burst": _requested_burst(steps),
        },
    }


def delivery_faults(
    steps: Sequence[Impairment],
    found: dict[str, Any],
    bursts: int,
    tolerance: Tolerance,
    this: Round,
) -> list[Finding]:
    """Return what is wrong. ``bursts``: how many runs of lost packets were seen."""
    asked, sent = found["requested"], found["sent"]
    faults = []
    raised = inflation(steps)

    def improbable(p_value: float, words: str) -> None:
        if p_value < this.alpha(tolerance.alpha):
            faults.append(Finding(words, is_final=is_certain(p_value, tolerance.alpha)))

    for kind, part in (
        ("lost", asked["loss"]),
        ("duplicated", asked["duplicate"] * (1 - asked["loss"])),
    ):
        count = found[kind]
        if kind == "lost" and asked["corrupt"]:
            continue  # a bit flipped in a header is a packet lost: judged together below
        improbable(
            p_value(count, sent, part, raised if kind == "lost" else 1.0),
            f"{count} of {sent} packets {kind}, asked for {_percent(part)}",
        )
    if asked["corrupt"]:
        spoilt = found["lost"] + found["damaged"]
        whole = 1 - asked["loss"]
        least, most = (
            1 - whole * (1 - asked["corrupt"] * noticed)
            for noticed in (1 - UNNOTICED_CORRUPTION, 1)
        )
        improbable(
            p_value_between(spoilt, sent, least, most) if found["damaged"] else 0.0,
            f"{found['damaged']} of {sent} packets damaged and {found['lost']} lost, "
            f"asked for {_percent(asked['corrupt'])} corrupted, {_percent(asked['loss'])} lost",
        )
    elif found["damaged"]:
        faults.append(Finding(f"{found['damaged']} of {sent} packets damaged, none asked for"))
    if asked["overtake"]:
        improbable(
            p_value(found["undelayed"], sent, asked["overtake"]),
            f"{found['undelayed']} of {sent} packets sent ahead without delay, "
            f"asked for {_percent(asked['overtake'])}",
        )
    faults += _burst_faults(found, bursts)
    return faults + _order_faults(steps, found)


def _burst_faults(found: dict[str, Any], bursts: int) -> list[Finding]:
    requested, mean = found["requested"]["mean_burst"], found["mean_burst"]
    if requested is None or bursts < 10:
        return []  # too few to tell
    # Lengths of bursts are about geometric, and the deviation of a mean falls with their number.
    deviation = np.sqrt(max(requested * (requested - 1), 0.1) / bursts)
    allowed = _BURSTS_OFF * requested + _BURST_DEVIATIONS * deviation
    off = abs(mean - requested)
    if off <= allowed:
        return []
    return [
        Finding(
            f"losses come in bursts of {mean:.2f} packets on average, asked for {requested:.2f} "
            f"(allowed: off by {allowed:.2f})",
            is_final=bool(off > allowed + _CERTAIN_DEVIATIONS * deviation),
        )
    ]


def _order_faults(steps: Sequence[Impairment], found: dict[str, Any]) -> list[Finding]:
    by_jitter = any(step.reorder and step.jitter_ns for step in steps)
    may = by_jitter or any(step.overtake for step in steps)
    if found["overtaken"] and not may:
        words = f"{found['overtaken']} packets of one flow overtaken, no reordering asked for"
        return [Finding(words)]
    if by_jitter and not found["overtaken"]:
        low, high = path_law(steps).quantiles([0.25, 0.75])
        if high - low > 2000 * _STEP_S * _TOGETHER:  # neighbours would change places all the time
            return [Finding(f"none of {found['sent']} packets overtaken, reordering asked for")]
    return []


def _requested_burst(steps: Sequence[Impairment]) -> float | None:
    """Return the mean length of bursts where one step loses packets, and does so in bursts."""
    lossy = [step for step in steps if step.loss_probability]
    if len(lossy) != 1 or lossy[0].bursts is None:
        return None
    length = mean_burst(lossy[0].bursts)
    return length if np.isfinite(length) else None


def _undelayed(steps: Sequence[Impairment], delivery: Delivery, bare_ms: float) -> int:
    """Return how many packets took less than half of the shortest delay that is asked for."""
    through = [step for step in steps if not step.overtake]
    shortest_ns = min(step.range_ns[0] for step in steps if step.overtake) / 2
    rest_ns = sum(step.range_ns[0] for step in through)
    return int((delivery.delays_ns < rest_ns + bare_ms * 1e6 + shortest_ns).sum())


def _percent(part: float) -> str:
    return "none" if part == 0 else f"{part * 100:.3g} %"
