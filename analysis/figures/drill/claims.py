"""What somebody claims of a system in a drill, compared with what was measured.

A claim names a window of a phase or the durability; the verdict is that of `analysis.claims`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wanlat.analysis.claims import Bound, Verdict
from wanlat.analysis.figures.drill.requests import quantity
from wanlat.analysis.names import count
from wanlat.analysis.stats.intervals import wilson

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]

LEAST_N = 10
"""Requests that were sent; of fewer nothing is decided."""
BOUNDS = {"at_least": "≥", "at_most": "≤"}


def bound_of(claim: Row) -> str:
    """What a claim asks for: ``reads ok ≥ 90%``."""
    figure = claim.get("availability")
    if figure is None:
        return f"durability {claim.get('durability')}"
    bounds = (f"{sign} {figure[key]}" for key, sign in BOUNDS.items() if key in figure)
    return f"{figure.get('of')} ok {' and '.join(bounds)}"


def claims_of(
    specs: Sequence[Row],
    requests: pd.DataFrame,
    phases: Sequence[Row],
    nodes: Mapping[str, str],
    durability: Row,
) -> list[dict[str, Any]]:
    """The claims of a manifest, each with its verdict; `nodes`: where each client ran."""
    found = []
    for spec in specs:
        if "availability" in spec:
            verdict, evidence = _on_availability(spec["availability"], requests, phases, nodes)
        else:
            verdict, evidence = _on_durability(str(spec.get("durability")), durability)
        words = {key: str(spec.get(key, "")) for key in ("id", "claim", "source")}
        found.append({**words, "verdict": str(verdict), "evidence": evidence, **spec})
    return found


def _on_durability(claimed: str, durability: Row) -> tuple[Verdict, str]:
    if durability["verdict"] == "unknown":
        return Verdict.NOT_DECIDED, f"durability is unknown: {durability['why']}"
    as_claimed = (durability["verdict"] == "pass") == (claimed == "intact")
    return Verdict.HOLDS if as_claimed else Verdict.DOES_NOT_HOLD, str(durability["why"])


def _on_availability(
    spec: Row, requests: pd.DataFrame, phases: Sequence[Row], nodes: Mapping[str, str]
) -> tuple[Verdict, str]:
    """The verdict on a share of what was sent in a window of a phase, and what it rests on:

    "157 of 160 reads from n3 (survivor) between 5 s and 30 s of `during` were ok (98.1 %, 95–99 %)"
    """
    name, client, what = (str(spec.get(key) or "") for key in ("phase", "client", "of"))
    name = name or "during"
    phase = next(each for each in phases if each["name"] == name)
    if phase["begin_s"] is None:
        return Verdict.NOT_DECIDED, f"`{name}` was not reached"
    since_s, until_s = quantity(spec.get("from")) or 0.0, quantity(spec.get("to"))
    at_s = requests["due_s"] - phase["begin_s"]
    chosen = (requests["phase"] == name) & (at_s >= since_s)
    chosen &= requests["operation"] == what.removesuffix("s")
    if until_s is not None:
        chosen &= at_s < until_s
    if client:
        chosen &= requests["client"] == client
    rows = requests[chosen]
    sent, ok = int(rows["sent"].sum()), int((rows["outcome"] == "ok").sum())
    when = f"from {since_s:g} s of `{name}` on" if since_s else f"in `{name}`"
    if until_s is not None:
        when = f"between {since_s:g} s and {until_s:g} s of `{name}`"
    where = f"from {nodes.get(client, client)} ({client})" if client else "from everywhere"
    evidence = f"{ok} of {count(sent, what.removesuffix('s'))} {where} {when} were ok"
    ci95 = wilson(ok, sent)
    if sent:
        share, low, high = (f"{100 * each:.1f}" for each in (ok / sent, *ci95))
        evidence += f" ({share} %, {low}–{high} %)"
    if len(rows) > sent:
        evidence += f"; {len(rows) - sent} due and never sent"
    measured_s = phase["end_s"] - phase["begin_s"]
    if not phase["complete"] and (until_s is None or measured_s < until_s):
        return Verdict.NOT_DECIDED, f"{evidence}; `{name}` was cut short after {measured_s:.1f} s"
    if sent < LEAST_N:
        return Verdict.NOT_DECIDED, f"{evidence}: too few to decide"
    bound = Bound.of({key: quantity(spec[key]) for key in BOUNDS if key in spec})
    return bound.judge(ok / sent, ci95)[0], evidence
