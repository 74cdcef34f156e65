"""Which timeout? How far each value of it holds, and how long a dead leader is missed.

A row is a value of a timeout, with what moves with it. Limits are those of the envelope. Of one
cluster the price is the median over kills, with the interval of its order statistics; of several
clusters the mean of their medians, with Student's interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from wanlat.analysis.figures.envelope import RTT, Tested, at, envelope, limit_of, pooled
from wanlat.analysis.names import digits, with_interval
from wanlat.analysis.section import (
    Column,
    Figures,
    Note,
    Row,
    Section,
    Table,
    figures_of,
    series_of,
    short,
)
from wanlat.analysis.stats.intervals import of_mean, of_median
from wanlat.bundle import REPLICATE
from wanlat.bundle.documents import Envelopes, Price, Takeover
from wanlat.bundle.matrix import Matrix
from wanlat.bundle.read import read_document
from wanlat.bundle.run import Run

Limits = Sequence[tuple[Row, Tested]]
Moved = Literal["more", "less", "no difference"]


@dataclass(frozen=True)
class Measured:
    """What a value came to: its limits as the envelope has them, and the price of each cluster."""

    limits: Limits
    prices: Sequence[Price]

    @property
    def kills(self) -> list[Takeover]:
        """What came of every kill."""
        return [kill for price in self.prices for kill in price.kills]


def advice(bundle: Run) -> Figures | None:
    """The timeouts of every system of `bundle` with a price; None where none was measured.

    `answered_s` and `led_s`, with intervals: from the leader's death to an acknowledged write, and
    to another leader. `rule_ms`: up to which RTT its makers' rule allows the value. Arrays:
    `Measured`.
    """
    envelopes = read_document(bundle.directory, Envelopes)
    limits = envelope(bundle)
    if envelopes is None or limits is None:
        return None
    prices = {system.system: system.price for system in envelopes.systems}
    timeouts = {
        system.name: [t.model_dump() for t in system.timeouts] for system in bundle.manifest.systems
    }
    return figures_of(_rows(limits, prices, timeouts))


def _rows(
    limits: Figures, prices: Mapping[str, Price | None], timeouts: Mapping[str, Any]
) -> Iterator[tuple[Row, Measured]]:
    for series in limits.series:
        price, own = prices.get(series.system), timeouts.get(series.system)
        if price is not None and own:
            mine = limits.where(lambda row, series=series: series_of(row) == series)  # type: ignore[misc]
            assert mine is not None
            pairs = [*zip(mine.rows, mine.arrays, strict=True)]
            yield _row(series._asdict(), own, own[0]["name"], Measured(pairs, [price]))


def _row(
    columns: Mapping[str, Any],
    timeouts: Sequence[Mapping[str, Any]],
    name: str,
    measured: Measured,
    varied: str = "",
) -> tuple[Row, Measured]:
    """The row of a value of timeout `name`, the others as they were."""
    own = next(timeout for timeout in timeouts if timeout["name"] == name)
    kills, prices = measured.kills, measured.prices
    idle = np.array([p.idle_bytes / p.idle_s / 1e3 for p in prices if p.idle_s])
    idle_ci95 = of_mean(idle) if idle.size > 1 else None
    row = {
        **columns,
        "timeouts": timeouts,
        "varied": varied,
        "timeout": name,
        "value_ms": own["ms"],
        "default_ms": own["default_ms"],
        "with_ms": {timeout["name"]: timeout["ms"] for timeout in timeouts if timeout is not own},
        "rtts": own.get("rtts"),
        "rule_ms": short(own["ms"] / own["rtts"], 6) if own.get("rtts") else None,
        "clusters": len(prices),
        "limits": [
            {key: limit[key] for key in _OF_LIMIT} | {"broken": _broken(limit, tested)}
            for limit, tested in measured.limits
        ],
        "kills": len(kills),
        "unanswered": sum(kill.answered_s is None for kill in kills),
        "waited_s": max((kill.waited_s for kill in kills), default=None),
        **_seconds("answered_s", prices, lambda kill: kill.answered_s),
        **_seconds("led_s", prices, lambda kill: kill.led_s),
        "idle_kb_s": short(float(idle.mean()), 4) if idle.size else None,
        "idle_kb_s_ci95": idle_ci95 and [short(bound, 4) for bound in idle_ci95],
        "lost": sum(price.lost for price in prices),
    }
    return row, measured


_OF_LIMIT = ("axis", "at", "clusters", "limit", "limit_ci95", "inside", "outside")


def _broken(limit: Row, tested: Tested) -> str | None:
    """What broke first of the promise where a limit ends: what a longer timeout may not help."""
    axis, outside = limit["axis"], limit["outside"]
    for test in tested.tests:
        value = 100 * test.network.loss if axis == "loss" else getattr(test.network, f"{axis}_ms")
        is_there = outside is not None and np.isclose(value, outside, rtol=1e-4)
        if is_there and at(test.network, axis) == limit["at"]:
            return next((trial.broken for trial in test.trials if trial.broken), None)
    return None


def _seconds(
    name: str, prices: Sequence[Price], price_of: Callable[[Takeover], float | None]
) -> dict[str, Any]:
    """A time after a kill, with its interval; None where half of the kills had no end in time."""
    every = [
        np.array([np.inf if (s := price_of(kill)) is None else s for kill in price.kills])
        for price in prices
        if price.kills
    ]
    medians = np.array([np.median(values) for values in every])
    value, ci95 = (float(medians.mean()) if medians.size else np.inf), None
    if np.isfinite(value):
        ci95 = of_median(every[0]) if medians.size == 1 else of_mean(medians)
    if ci95 is not None and not np.isfinite(ci95).all():
        ci95 = None
    shortened = ci95 and [short(bound, 6) for bound in ci95]
    return {name: short(value, 6), f"{name}_ci95": shortened}


def over(matrix: Matrix, figures: Figures) -> Figures | None:
    """The values over the clusters of a matrix, and at each combination of what it varies besides.

    Of a system the timeout in question is the first that varies, and follows none that does.
    """
    left_out = matrix.untrusted
    pairs = [
        (row, measured)
        for row, measured in zip(figures.rows, figures.arrays, strict=True)
        if row["point"] not in left_out
    ]
    options = {timeout["option"] for row, _ in pairs for timeout in row["timeouts"]}
    others = tuple(p for p in figures.parameters if p != REPLICATE and p not in options)
    groups: dict[str, list[tuple[Row, Measured]]] = {}
    for row, measured in pairs:
        values = [(timeout["name"], timeout["ms"]) for timeout in row["timeouts"]]
        key = str((series_of(row), [row[name] for name in others], values))
        groups.setdefault(key, []).append((row, measured))
    rows = [_pooled(group, _in_question(pairs, group[0][0]), others) for group in groups.values()]
    order = {series: place for place, series in enumerate(figures.series)}

    def place(pair: tuple[Row, Measured]) -> tuple[Any, ...]:
        row = pair[0]
        return order[series_of(row)], *(str(row[name]) for name in others), row["value_ms"]

    pooled_figures = figures_of(sorted(rows, key=place))
    return pooled_figures and replace(pooled_figures, parameters=others)


def _in_question(pairs: Sequence[tuple[Row, Measured]], row: Row) -> str:
    mine = [other["timeouts"] for other, _ in pairs if series_of(other) == series_of(row)]
    varying = [
        timeout["name"]
        for number, timeout in enumerate(row["timeouts"])
        if len({timeouts[number]["ms"] for timeouts in mine}) > 1
    ]
    by_itself = [
        timeout["name"]
        for timeout in row["timeouts"]
        if timeout["name"] in varying and timeout.get("follows") not in varying
    ]
    return str([*by_itself, row["timeout"]][0])


def _pooled(
    group: Sequence[tuple[Row, Measured]], name: str, others: Sequence[str]
) -> tuple[Row, Measured]:
    first = group[0][0]
    by_limit: dict[tuple[str, str], list[tuple[Row, Tested]]] = {}
    for _, measured in group:
        for limit, tested in measured.limits:
            by_limit.setdefault((limit["axis"], limit["at"]), []).append((limit, tested))
    whole = Measured(
        [pooled(pairs) for pairs in by_limit.values()],
        [price for _, measured in group for price in measured.prices],
    )
    own = {**series_of(first)._asdict(), **{key: first[key] for key in others}}
    varied = ", ".join(f"{key} {first[key]}" for key in others if first[key] is not None)
    return _row(own, first["timeouts"], name, whole, varied)


# -- what is said of them --------------------------------------------------------------------


def spelt(ms: float) -> str:
    """A time as an option has it: 500 ms, 1.5 s."""
    return f"{ms / 1000:g} s" if ms >= 1000 else f"{ms:g} ms"


def without_loss(row: Row) -> Row | None:
    """The limit of the RTT where nothing is lost."""
    return next((e for e in row["limits"] if (e["axis"], e["at"]) == (RTT, "no loss")), None)


def is_beyond(limit: Row) -> bool:
    """Whether all clusters held as far as was searched."""
    return limit["inside"] is not None and limit["outside"] is None


def _bounds(limit: Row) -> tuple[float, float]:
    """Between which values a limit lies, as far as is known."""
    if limit["limit_ci95"] is None and limit["clusters"] > 1 and limit["outside"] is not None:
        return 0.0, np.inf  # some clusters had none on the axis
    low, high = limit["limit_ci95"] or (limit["inside"], limit["outside"])
    return low or 0.0, np.inf if high is None else high


def moved(limit: Row, usual: Row) -> Moved:
    """Whether more or less holds than with the usual value, as far as both intervals show."""
    (low, high), (usual_low, usual_high) = _bounds(limit), _bounds(usual)
    if low > usual_high:
        return "more"
    return "less" if high < usual_low else "no difference"


def usual_of(rows: Sequence[Row]) -> Row:
    """The row that others are compared with: that of the default, or of what is nearest to it."""
    return min(rows, key=lambda row: abs(np.log(row["value_ms"] / row["default_ms"])))


def by_question(rows: Sequence[Row]) -> list[list[Row]]:
    """The values of each system's timeout, at each combination of what a matrix varies besides."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((series_of(row), row["timeout"], row["varied"]), []).append(row)
    return [*groups.values()]


def _named(row: Row) -> str:
    usual = " (the default)" if row["value_ms"] == row["default_ms"] else ""
    return f"{row['timeout']} {spelt(row['value_ms'])}{usual}"


def cost_of(row: Row, key: str = "answered_s") -> str | None:
    """A time after a kill with its interval, s; that it is longer than it was waited for."""
    if not row["kills"]:
        return None
    if row[key] is None:
        return f"more than {row['waited_s']:g}"
    ci95 = row[f"{key}_ci95"]
    interval = f" [{digits(ci95[0], 2)}, {digits(ci95[1], 2)}]" if ci95 else ""
    return f"{digits(row[key], 2)}{interval}"


def held(row: Row) -> str:
    """How far a value holds without loss, in words."""
    limit = without_loss(row)
    if limit is None:
        return "was not searched to its end"
    if is_beyond(limit):
        return f"holds beyond {digits(limit['inside'], 3)} ms RTT (the search ends there)"
    if limit["limit"] is None and limit["clusters"] > 1:
        return "has a limit on less than half of its clusters"
    if limit["limit"] is None:
        return "holds at no RTT that was searched"
    return f"holds up to {limit_of(limit)} RTT"


def _what(limit: Row) -> str:
    if limit["axis"] == RTT:
        return "RTT without loss" if limit["at"] == "no loss" else f"RTT at {limit['at']}"
    return f"{limit['axis']} at {limit['at']}"


def enough(row: Row) -> str:
    """Whether the value held as far as its makers' rule allows it: by the interval of the limit."""
    limit = without_loss(row)
    low, high = _bounds(limit) if limit else (0.0, np.inf)
    if low >= row["rule_ms"]:
        return "enough"
    return "not enough" if high < row["rule_ms"] else "not decided"


def _by_the_rule(row: Row) -> str | None:
    """Up to which RTT the makers' rule allows the value, and whether it was enough for that."""
    return f"{spelt(row['rule_ms'])}: {enough(row)}" if row["rule_ms"] else None


def _moves(figures: Figures) -> Figures | None:
    """Every limit at every value, and what it is compared with the usual one."""
    if len(figures.rows) < 2:
        return None
    changes = []
    for rows in by_question(figures.rows):
        usual = usual_of(rows)
        known = {(limit["axis"], limit["at"]): limit for limit in usual["limits"]}
        for row in rows:
            own = {key: row[key] for key in ("system", "version", *figures.parameters)}
            for limit in row["limits"]:
                than = known.get((limit["axis"], limit["at"]))
                way = None if than is None or row is usual else moved(limit, than)
                place = {
                    "timeout": row["timeout"],
                    "value_ms": row["value_ms"],
                    "what": _what(limit),
                }
                changes.append(({**own, **place, **limit, "moved": way}, None))
    made = figures_of(changes)
    return made and replace(made, parameters=figures.parameters)


def _value(row: Row) -> str:
    return f"{row['timeout']} {spelt(row['value_ms'])}"


ADVICE = Section(
    key="advice",
    title="Which timeout?",
    figures=advice,
    across=over,
    rows="choices",
    columns=(
        Column("timeout", _named, words=True),
        Column(
            "with",
            lambda row: ", ".join(f"{k} {spelt(ms)}" for k, ms in row["with_ms"].items()) or None,
            words=True,
        ),
        Column("clusters", "{clusters}", optional=True),
        Column(
            "RTT up to [95 %]",
            lambda row: limit_of(limit) if (limit := without_loss(row)) else None,
        ),
        Column("by the rule", _by_the_rule, words=True),
        Column("kills", "{kills}", optional=True),
        Column("until a write, s [95 %]", cost_of),
        Column("until a leader, s [95 %]", lambda row: cost_of(row, "led_s")),
        Column(
            "idle kB/s [95 %]",
            lambda row: (
                with_interval(row["idle_kb_s"], row["idle_kb_s_ci95"]) if row["idle_kb_s"] else None
            ),
        ),
    ),
    definitions={
        "answered_s": "from SIGKILL to the process of the node that led until a write that was "
        "sent afterwards was acknowledged, the sites near each other: of one cluster the median "
        "over kills, of several the mean of their medians",
        "led_s": "likewise until another node says that it leads",
        "rule_ms": "the RTT up to which the makers' rule allows the value",
        "idle_kb_s": "what crosses all WAN links in a second without a request, mean over clusters",
    },
    notes=(
        Note(
            lambda rows, _titles: (
                f"By the rule: the RTT for which the makers' rule allows the value "
                f"({rows[0]['timeout']} at least {rows[0]['rtts']:g} × RTT), and whether the "
                "promise was kept up to it."
            ),
            lambda row: row["rule_ms"] is not None,
        ),
        Note(
            "Of one cluster each: two clusters may differ, so measure more (`--replicates 5`).",
            lambda row: row["clusters"] == 1,
        ),
        Note(
            "After some kills no write was acknowledged in time: {rows}.",
            lambda row: row["unanswered"] > 0,
            detail=" ({unanswered} of {kills}, {waited_s:g} s)",
        ),
        Note("Acknowledged writes were lost by kills: {rows}.", lambda row: row["lost"] > 0),
    ),
    charts={"advice": "wanlat.analysis.charts.advice:draw"},
    is_trouble=lambda row: bool(row["lost"] or row["unanswered"]),
    group=lambda row: row["system"],
    hidden=frozenset({"timeouts", "varied"}),
    tables=(
        Table(
            title="What a timeout moves",
            rows=_moves,
            columns=(
                Column("timeout", _value, words=True),
                Column("of", "{what}", words=True),
                Column("holds up to [95 %]", limit_of),
                Column("compared", lambda row: row["moved"], words=True),
                Column("what breaks then", lambda row: row["broken"], words=True),
            ),
            key="limits",
            group=lambda row: (row["system"], row["value_ms"]),
        ),
    ),
)
