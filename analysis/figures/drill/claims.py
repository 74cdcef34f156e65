"""What somebody claims of a system in a drill, compared with what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wanlat.analysis.claims import Bound, Verdict
from wanlat.analysis.figures.drill.model import Claim, Durability, Phase, Place
from wanlat.analysis.figures.drill.requests import quantity
from wanlat.analysis.names import count
from wanlat.analysis.stats.intervals import wilson

if TYPE_CHECKING:
    import pandas as pd

LEAST_N = 10
"""Requests that were sent; of fewer nothing is decided."""


def bound_of(spec: Mapping[str, Any]) -> str:
    """What a claim asks for: ``reads ok ≥ 90%``."""
    figure = spec.get("availability")
    if not isinstance(figure, Mapping):
        return f"durability {spec.get('durability')}"
    signs = (("at_least", "≥"), ("at_most", "≤"))
    bounds = [f"{sign} {figure[key]}" for key, sign in signs if figure.get(key) is not None]
    return f"{figure.get('of')} ok {' and '.join(bounds)}"


def claims_of(
    specs: Sequence[Mapping[str, Any]],
    requests: pd.DataFrame,
    phases: Sequence[Phase],
    places: Sequence[Place],
    durability: Durability,
) -> tuple[Claim, ...]:
    """The claims of a manifest, each with its verdict."""
    found = []
    for spec in specs:
        if spec.get("durability") is not None:
            verdict, evidence = _on_durability(str(spec["durability"]), durability)
        else:
            bound = spec.get("availability") or {}
            verdict, evidence = _on_availability(bound, requests, phases, places)
        words = {name: str(spec.get(name, "")) for name in ("id", "claim", "source")}
        found.append(Claim(**words, verdict=verdict, evidence=evidence, spec=spec))
    return tuple(found)


def _on_durability(claimed: str, durability: Durability) -> tuple[Verdict, str]:
    if durability.verdict == "unknown":
        return Verdict.NOT_DECIDED, f"durability is unknown: {durability.why}"
    is_intact = durability.verdict == "pass"
    as_claimed = is_intact == (claimed == "intact")
    return Verdict.HOLDS if as_claimed else Verdict.DOES_NOT_HOLD, durability.why


def _on_availability(
    spec: Mapping[str, Any],
    requests: pd.DataFrame,
    phases: Sequence[Phase],
    places: Sequence[Place],
) -> tuple[Verdict, str]:
    name = str(spec.get("phase") or "during")
    phase = next((each for each in phases if each.name == name), None)
    if phase is None or phase.begin_s is None or phase.end_s is None:
        return Verdict.NOT_DECIDED, f"`{name}` was not reached"
    since_s, until_s = quantity(spec.get("from")) or 0.0, quantity(spec.get("to"))
    rows = requests[requests["phase"] == name]
    rows = rows[rows["due_s"] >= phase.begin_s + since_s]
    if until_s is not None:
        rows = rows[rows["due_s"] < phase.begin_s + until_s]
    if spec.get("of") in ("reads", "writes"):
        rows = rows[rows["operation"] == str(spec["of"]).removesuffix("s")]
    if spec.get("client"):
        rows = rows[rows["client"] == str(spec["client"])]
    sent, ok = int(rows["sent"].sum()), int((rows["outcome"] == "ok").sum())
    evidence = _evidence(spec, places, (ok, sent, len(rows)), (since_s, until_s, name))
    measured_s = phase.end_s - phase.begin_s
    if not phase.complete and (until_s is None or measured_s < until_s):
        return Verdict.NOT_DECIDED, f"{evidence}; `{name}` was cut short after {measured_s:.1f} s"
    if sent < LEAST_N:
        return Verdict.NOT_DECIDED, f"{evidence}: too few to decide"
    low, high = quantity(spec.get("at_least")), quantity(spec.get("at_most"))
    bound = Bound(-math.inf if low is None else low, math.inf if high is None else high)
    return bound.judge(ok / sent, wilson(ok, sent))[0], evidence


def _evidence(
    spec: Mapping[str, Any],
    places: Sequence[Place],
    counts: tuple[int, int, int],
    window: tuple[float, float | None, str],
) -> str:
    """ "157 of 160 reads from n3 between 5 s and 30 s of `during` were ok (98.1 %, 95–99 %)".

    `counts` are those ok, sent and due; those that were due and never sent are counted apart.
    """
    ok, sent, due = counts
    since_s, until_s, phase = window
    what, client = str(spec.get("of") or "requests"), str(spec.get("client") or "")
    node = next((each.node for each in places if each.name == client), client)
    where = f"from {node}" if client else "from everywhere"
    where += f" ({client})" if node != client else ""
    when = f"in `{phase}`"
    if until_s is not None:
        when = f"between {since_s:g} s and {until_s:g} s of `{phase}`"
    elif since_s:
        when = f"from {since_s:g} s of `{phase}` on"
    if not due:
        return f"no {what.removesuffix('s')} was due {where} {when}"
    low, high = wilson(ok, sent)
    share = f" ({ok / sent:.1%}, {low * 100:.1f}–{high:.1%})".replace("%", " %") if sent else ""
    never = f"; {due - sent} due and never sent" if due > sent else ""
    return f"{ok} of {count(sent, what.removesuffix('s'))} {where} {when} were ok{share}{never}"
