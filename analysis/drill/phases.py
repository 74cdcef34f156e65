"""The phases of a drill as they really were: when each began and ended, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from wanlat.analysis.drill.figures import figures_of
from wanlat.analysis.drill.model import PHASES, Phase

if TYPE_CHECKING:
    import pandas as pd


def phases_of(
    requests: pd.DataFrame,
    marks_s: Mapping[str, float],
    planned_s: Mapping[str, float | None],
    *,
    record_end_s: float | None,
    was_cut_short: bool,
) -> tuple[Phase, ...]:
    """All three of PHASES.

    `marks_s` has the begin of each phase that is told of, and of "end"; `planned_s` how long each
    was to be; `record_end_s` is the last instant of which anything is known. `was_cut_short` says
    that the drill ended itself before its end: then things went on happening, but no requests.
    """
    found = []
    for name, following in zip(PHASES, (*PHASES[1:], "end"), strict=True):
        rows = requests[requests["phase"] == name]
        begin_s = _begin_s(rows, marks_s.get(name), record_end_s)
        end_s, complete = None, False
        if begin_s is not None and record_end_s is not None:
            planned_end_s = marks_s.get(following, begin_s + (planned_s.get(name) or float("inf")))
            last_s = _last_s(rows, record_end_s) if was_cut_short else record_end_s
            complete = last_s >= planned_end_s
            end_s = planned_end_s if complete else max(begin_s, last_s)
        found.append(
            Phase(
                name=name,
                begin_s=begin_s,
                end_s=end_s,
                complete=complete,
                reads=figures_of(rows[rows["operation"] == "read"]),
                writes=figures_of(rows[rows["operation"] == "write"]),
            )
        )
    return tuple(found)


def _begin_s(
    rows: pd.DataFrame, marked_s: float | None, record_end_s: float | None
) -> float | None:
    """When it began; None if that was planned, but nothing is known of any later instant."""
    if marked_s is None:
        return None if rows.empty else float(rows["due_s"].min())
    was_reached = not rows.empty or (record_end_s is not None and record_end_s >= marked_s)
    return marked_s if was_reached else None


def _last_s(rows: pd.DataFrame, otherwise_s: float) -> float:
    known_s = [*rows["due_s"].dropna(), *rows["end_s"].dropna()]
    return max(known_s, default=otherwise_s)
