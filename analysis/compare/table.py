"""A comparison on a terminal: a row an endpoint, then what changed, then what the gate says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from wanlat.analysis.compare.judge import is_merely_wide
from wanlat.analysis.compare.model import (
    CHAIN,
    FAILURES,
    INTERCEPT,
    LATENCY_AT,
    MEAN,
    MEDIAN,
    OUTLIERS,
    ROUND_TRIPS,
    WAN_BYTES,
    Change,
    Compared,
    Comparison,
    Quantity,
    Side,
    Verdict,
)
from wanlat.analysis.compare.sentences import (
    difference_of,
    figure,
    name_of,
    sentences,
    title_of,
    unit_of,
    versions_of,
    without_support,
)
from wanlat.analysis.names import EN_DASH, count
from wanlat.analysis.placement import is_known

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_STYLES = {
    Verdict.WORSE: "bold red",
    Verdict.GONE: "bold red",
    Verdict.NOT_COMPARABLE: "magenta",
    Verdict.BETTER: "green",
    Verdict.NOT_DECIDED: "yellow",
    Verdict.SAME: "",
    Verdict.NEW: "cyan",
}
_COLUMNS = {
    True: (ROUND_TRIPS, CHAIN, LATENCY_AT, INTERCEPT, WAN_BYTES, FAILURES),
    False: (MEDIAN, MEAN, OUTLIERS, FAILURES),
}
_HEADERS = {
    ROUND_TRIPS: "round trips",
    CHAIN: "chain",
    INTERCEPT: "own time\nms",
    WAN_BYTES: "WAN bytes",
    MEDIAN: "median\nms",
    MEAN: "mean\nms",
    OUTLIERS: "outliers",
    FAILURES: "not ok",
}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print the table of `comparison`, each change with its interval, notes, and the gate."""
    from rich.padding import Padding
    from rich.text import Text

    def line(text: str, style: str = "") -> None:
        console.print(Padding(Text(text, style=style), (0, 1)))

    line(f"OLD: {_side(comparison.old)}", "bold")
    line(f"NEW: {_side(comparison.new)}", "bold")
    for text in comparison.differs:
        line(f"Not alike: {text}.", "bold yellow")
    console.print(endpoints_table(comparison))
    undecided = False
    for compared in comparison.endpoints:
        told = without_support([each for each in compared.changes if _is_worth_telling(each)])
        undecided |= any(each.verdict is Verdict.NOT_DECIDED for each in told)
        aside = [each for each in compared.changes if not each.gated and _has_changed(each)]
        if told or aside:
            line(f"{name_of(compared)}:", "bold")
        for verdict, some in groupby(told, key=lambda each: each.verdict):
            for sentence in sentences(list(some), comparison.at_rtt_ms):
                line(f"  {sentence}", _STYLES[verdict])
        if aside:
            line(f"  Not in the gate: {_in_short(aside, comparison)}.", "dim")
        if modes := _modes(compared):
            line(f"  {modes}", "dim")
    for note in comparison.notes:
        line(f"• {note}")
    if undecided:
        line("• More samples decide what is not decided, or wider thresholds.")
    line(gate_sentence(comparison), "bold green" if comparison.passed else "bold red")


def _side(side: Side) -> str:
    when = f", {side.started}" if side.started else ""
    return f"{side.directory} ({side.study} on {side.topology}{when})"


def gate_sentence(comparison: Comparison) -> str:
    """Whether the gate lets NEW pass, and how many endpoints have which verdict."""
    counts = ", ".join(
        f"{number} {verdict}"
        for verdict in Verdict
        if (number := comparison.counts.get(verdict, 0))
    )
    gate = ", ".join(comparison.gate)
    failing = sum(each.fails for each in comparison.endpoints)
    if comparison.passed:
        return f"The gate ({gate}) lets NEW pass. Endpoints: {counts}."
    return f"The gate ({gate}) does not let NEW pass: {count(failing, 'endpoint')}. All: {counts}."


def endpoints_table(comparison: Comparison) -> Table:
    """A row an endpoint and placement: figures of OLD → of NEW, and the verdict of the gate."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    columns = _COLUMNS[comparison.of_round_trips]
    table = Table(
        caption=Text("OLD → NEW. A figure alone: hardly any difference."),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    table.add_column("endpoint", overflow="fold")
    for quantity in columns:
        header = _HEADERS.get(quantity) or f"at {comparison.at_rtt_ms:g} ms\nms"
        table.add_column(header, justify="right", overflow="fold")
    table.add_column("verdict", overflow="fold")
    for versions, group in groupby(comparison.endpoints, key=versions_of):
        table.add_row(Text(versions, style="italic"))
        for compared in group:
            table.add_row(
                Text(_place(compared)),
                *(_cell(compared, quantity) for quantity in columns),
                Text(
                    f"{compared.verdict}{' ✗' if compared.fails else ''}",
                    style=_STYLES[compared.verdict],
                ),
            )
        table.add_section()
    return table


def _place(compared: Compared) -> str:
    where = f" {compared.placement}" if is_known(compared.placement) else ""
    return f"  {compared.endpoint}{where}"


def _cell(compared: Compared, quantity: Quantity) -> Text:
    from rich.text import Text

    change = compared.change(quantity)
    if change is None:
        return Text(EN_DASH, style="dim")
    old, new = (figure(quantity, value) for value in (change.old, change.new))
    text = old if old == new else f"{old} → {new}"
    return Text(text, style=_STYLES[change.verdict] if change.verdict is not Verdict.SAME else "")


def _is_worth_telling(change: Change) -> bool:
    """Whether a change has a sentence: what the gate looks at, and what of it is not known."""
    if not change.gated or change.verdict is Verdict.SAME:
        return False
    return not is_merely_wide(change)


def _has_changed(change: Change) -> bool:
    return change.verdict in (Verdict.WORSE, Verdict.BETTER)


def _in_short(changes: Sequence[Change], comparison: Comparison) -> str:
    """ "latency at 100 ms +203.0 [+199.4, +206.5] ms worse; …"."""
    return "; ".join(
        f"{title_of(each.quantity, comparison.at_rtt_ms)} {difference_of(each)}"
        f"{unit_of(each.quantity)} {each.verdict}"
        for each in changes
    )


def _modes(compared: Compared) -> str:
    """The modes, where either bundle has more than one and something changed."""
    sides = [compared.old_modes, compared.new_modes]
    if compared.verdict is Verdict.SAME or all(len(modes) < 2 for modes in sides):
        return ""
    written = [
        ", ".join(f"{100 * mode.share:.0f} % {mode.round_trips:.2f}" for mode in modes) or EN_DASH
        for modes in sides
    ]
    return f"modes {written[0]} → {written[1]}"
