"""The operating envelope: how far apart a cluster's nodes may be while it keeps a promise.

Of one cluster a limit has two ends that were tested: it held at the one and not at the other. Of
several clusters it is the geometric mean of their middles, with Student's interval (of logarithms),
widened by what the ends of each lie apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wanlat.analysis.names import EN_DASH, count, digits, estimate, listing
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
from wanlat.analysis.stats.intervals import of_mean
from wanlat.bundle import REPLICATE, documents
from wanlat.bundle.documents import (
    Envelope,
    EnvelopeLimit,
    Envelopes,
    Network,
    Regions,
    TestedNetwork,
)
from wanlat.bundle.matrix import Matrix
from wanlat.bundle.read import read_document
from wanlat.bundle.run import Run

RTT = "rtt"
_CALLED = {RTT: "RTT", "jitter": "jitter", "loss": "loss"}
UNITS = {RTT: "ms", "jitter": "ms", "loss": "%"}
_NAMED = 3


@dataclass(frozen=True)
class Tested:
    """What a chart draws beside limits: networks that were tested, and pairs of regions."""

    tests: Sequence[TestedNetwork]
    regions: Sequence[Regions]


def envelope(bundle: Run) -> Figures | None:
    """The limits of every system of `bundle`; None where nothing was searched.

    `limit` with `limit_ci95`, `inside`, `outside` and `back` are in the unit of the axis: ms, or
    percent. `back`: the greatest value that held coming from beyond. Arrays: `Tested`.
    """
    document = read_document(bundle.directory, Envelopes)
    return figures_of(_rows(bundle, document)) if document else None


def _rows(bundle: Run, document: Envelopes) -> Iterator[tuple[Row, Tested]]:
    study = bundle.manifest.study or documents.Study()
    by_name = {system.system: system for system in document.systems}
    for series in bundle.systems:
        mine = by_name.get(series.system)
        for limit in mine.limits if mine else ():
            options = (study.options or {}).get(series.system)
            tested = Tested(mine.tests if mine else (), mine.regions if mine else ())
            yield _with_regions(
                {
                    **series._asdict(),
                    **_of_limit(limit),
                    "clusters": 1,
                    "trials": sum(len(test.trials) for test in mine.tests) if mine else 0,
                    "lost": sum(test.lost for test in mine.tests) if mine else 0,
                    "stale": sum(test.stale for test in mine.tests) if mine else 0,
                    "restarted": sum(test.restarted for test in mine.tests) if mine else 0,
                    "varied": "",
                    "by_default": not options,
                    "promise": _promise(study, mine),
                },
                tested,
            )


def _of_limit(limit: EnvelopeLimit) -> dict[str, Any]:
    scale = 100 if limit.axis == "loss" else 1

    def in_unit(value: float | None) -> float | None:
        return None if value is None else short(scale * value, 6)

    inside, outside = in_unit(limit.inside), in_unit(limit.outside)
    is_found = inside is not None and outside is not None
    return {
        "axis": limit.axis,
        "at": at(limit.at, limit.axis),
        "limit": short((inside * outside) ** 0.5, 6) if inside and outside else None,
        "limit_ci95": [inside, outside] if is_found else None,
        "inside": inside,
        "outside": outside,
        "back": in_unit(limit.back),
        "back_ci95": None,
        "approached": limit.is_approached,
        "hysteresis": int(limit.has_hysteresis),
        "changed": [in_unit(value) for value in limit.changed],
    }


def at(network: Network, axis: str) -> str:
    """The rest of a network of which an axis is searched, in words."""
    parts = [] if axis == RTT else [f"RTT {network.rtt_ms:g} ms"]
    parts += [f"± {network.jitter_ms:g} ms"] if network.jitter_ms and axis != "jitter" else []
    parts += [f"{100 * network.loss:g} % lost"] if network.loss and axis != "loss" else []
    return ", ".join(parts) or "no loss"


def _promise(study: documents.Study, mine: Envelope | None) -> str:
    spec = study.envelope or {}
    promise: Mapping[str, Any] = spec.get("promise") or {}
    share, deadline = promise.get("share"), promise.get("deadline")
    served = (
        f"{share} of {promise.get('rate', 0):g} requests a second are answered within {deadline}"
    )
    parts = [served, "no acknowledged write is lost"]
    if mine and mine.leads and promise.get("leader_stays"):
        parts.append("no other node comes to lead")
    if promise.get("cut") not in (None, "0ms", "0s", "0ns"):
        parts.append(
            f"that again {promise.get('recovery')} after a link was cut for {promise['cut']}"
        )
    return ", ".join(parts)


def over(matrix: Matrix, figures: Figures) -> Figures | None:
    """The limits over the clusters of a matrix, of each combination of what it varies besides."""
    others = tuple(name for name in figures.parameters if name != REPLICATE)
    left_out, groups = matrix.untrusted, dict[tuple[str, ...], list[tuple[Row, Tested]]]()
    for row, tested in zip(figures.rows, figures.arrays, strict=True):
        if row["point"] not in left_out:
            varied = ", ".join(f"{name} {row[name]}" for name in others if row[name] is not None)
            key = *(str(row[column]) for column in ("system", "version", "axis", "at")), varied
            groups.setdefault(key, []).append(({**row, "varied": varied}, tested))
    limits = figures_of(pooled(pairs) for pairs in groups.values())
    return None if limits is None else replace(limits, parameters=others)


_SUMS = ("clusters", "trials", "lost", "stale", "restarted", "hysteresis")


def _back(rows: Sequence[Row]) -> Row:
    """How far it holds coming from beyond, over clusters if most of them have it."""
    logs = np.log([row["back"] for row in rows if row["back"]])
    if 2 * logs.size <= len(rows) or logs.size < 2:
        return {"back": None, "back_ci95": None}
    mean, *ends = (short(float(np.exp(value)), 6) for value in (logs.mean(), *of_mean(logs)))
    return {"back": mean, "back_ci95": ends}


def pooled(pairs: Sequence[tuple[Row, Tested]]) -> tuple[Row, Tested]:
    """A limit of several clusters, with rows of the same axis at the same place."""
    rows = [row for row, _ in pairs]
    first, known = rows[0], [row for row in rows if row["limit"] is not None]
    row: dict[str, Any] = {key: value for key, value in first.items() if key != "point"}
    if len(rows) == 1:
        return pairs[0]
    for key in ("inside", "outside"):
        ends = [cluster[key] for cluster in known if cluster[key] is not None]
        row[key] = None if not ends else max(ends) if key == "outside" else min(ends)
    row |= {
        **{key: sum(cluster[key] for cluster in rows) for key in _SUMS},
        **_back(rows),
        "changed": [value for cluster in rows for value in cluster["changed"]],
        "limit": None,
        "limit_ci95": None,
    }
    if 2 * len(known) > len(rows):
        logs = np.log([cluster["limit"] for cluster in known])
        low, high = of_mean(logs) if len(logs) > 1 else (logs[0], logs[0])
        apart = max(np.log(cluster["outside"] / cluster["inside"]) for cluster in known) / 2
        row["limit"] = short(float(np.exp(logs.mean())), 6)
        row["limit_ci95"] = [short(float(np.exp(e)), 6) for e in (low - apart, high + apart)]
    elif all(cluster["outside"] is None for cluster in rows):
        row["inside"] = min(cluster["inside"] for cluster in rows)
    tests = [test for _, tested in pairs for test in tested.tests]
    return _with_regions(row, Tested(tests, pairs[0][1].regions))


def limit_of(row: Row) -> str:
    """A limit with its interval and unit; or that it lies beyond the axis, or below."""
    unit = UNITS[row["axis"]]
    if row["limit"] is None:
        if row["outside"] is None and row["inside"] is not None:
            return f"beyond {digits(row['inside'], 3)} {unit}"
        return "nowhere" if row["clusters"] == 1 else "not of most clusters"
    low, high = (digits(bound, 3) for bound in row["limit_ci95"])
    return f"{digits(row['limit'], 3)} {unit} [{low}, {high}]"


def placed(row: Row, regions: Sequence[Regions]) -> tuple[list[Regions], list[Regions]]:
    """Pairs of regions inside a limit of the RTT, the farthest first; and outside, the nearest."""
    low, high = row["limit_ci95"] or (row["inside"] or 0.0, row["outside"] or np.inf)
    near = sorted(regions, key=lambda pair: pair.rtt_ms)
    return [p for p in near[::-1] if p.rtt_ms <= low], [p for p in near if p.rtt_ms >= high]


def _with_regions(row: Row, tested: Tested) -> tuple[Row, Tested]:
    """A limit of the RTT with the pairs of regions that are inside, and that are not."""
    if row["axis"] != RTT or not tested.regions:
        return {**row, "regions": None}, tested
    inside, outside = placed(row, tested.regions)
    text = f"{len(inside)} of {count(len(tested.regions), 'pair')} of regions are inside"
    text += _named(inside)
    if outside:
        text += f", and {len(outside)} are not{_named(outside)}"
    return {**row, "regions": text}, tested


def _named(pairs: Sequence[Regions]) -> str:
    texts = [f"{a}{EN_DASH}{b} {pair.rtt_ms:g} ms" for pair in pairs for a, b in [pair.sites]]
    return f" ({listing(texts, _NAMED)})" if texts else ""


def by_system(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each version of a system, at each combination of what a matrix varies."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((series_of(row), row["varied"]), []).append(row)
    return [*groups.values()]


def _tested(figures: Figures) -> Figures | None:
    """The networks that were tested, of a run of one cluster of each system."""
    if figures.parameters or any(row["clusters"] > 1 for row in figures.rows):
        return None
    return figures_of(
        (
            {
                **series._asdict(),
                **test.model_dump(exclude={"trials"}),
                "held": sum(trial.held for trial in test.trials),
                "n": len(test.trials),
                "broken": next((trial.broken for trial in test.trials if trial.broken), None),
            },
            None,
        )
        for series, tested in dict(
            zip(map(series_of, figures.rows), figures.arrays, strict=True)
        ).items()
        for test in tested.tests
    )


def _is_first(row: Row) -> bool:
    """Whether it is the row of a cluster that stands for all its limits."""
    return (row["axis"], row["at"]) == (RTT, "no loss")


def _network(row: Row) -> str:
    network = Network.model_validate(row["network"])
    rest = at(network, RTT)
    return f"{network.rtt_ms:.4g} ms" + ("" if rest == "no loss" else f", {rest}")


ENVELOPE = Section(
    key="envelope",
    title="Operating envelope",
    figures=envelope,
    across=over,
    rows="limits",
    columns=(
        Column("of", lambda row: _CALLED[row["axis"]], words=True),
        Column("with", "{at}", words=True),
        Column("clusters", "{clusters}", optional=True),
        Column("holds up to [95 %]", limit_of),
        Column("coming from beyond [95 %]", estimate("back")),
        Column("trials", "{trials}"),
    ),
    definitions={
        "limit": "middle of `inside`, where the promise held, and `outside`, where it did not; of "
        "several clusters their geometric mean, with Student's interval",
        "back": "greatest value at which the promise held when the network before was one on which "
        "it does not; of several clusters their geometric mean, with Student's interval",
        "hysteresis": "on how many clusters less holds coming from beyond than coming from near",
        "changed": "values at which it was asked twice, some time apart, with two verdicts",
    },
    notes=(
        Note(lambda rows, _titles: f"The promise: {rows[0]['promise']}."),
        Note(
            lambda rows, titles: " ".join(
                f"{titles[row['system']]}, {row['varied'] or row['at']}: {row['regions']}."
                for row in rows
            ),
            lambda row: row["regions"] is not None,
        ),
        Note(
            "Of one cluster the interval is from where it held to where it did not: {rows}.",
            lambda row: row["clusters"] == 1 and row["limit"] is not None,
        ),
        Note(
            "Hysteresis: coming from beyond, less holds than coming from near: {rows}.",
            lambda row: row["hysteresis"] > 0,
            detail=" ({at}; on {hysteresis} of {clusters})",
        ),
        Note(
            "Drift, or no sharp limit: a network had two verdicts; the later one counts: {rows}.",
            lambda row: bool(row["changed"]),
            detail=" ({at})",
        ),
        Note(
            "Acknowledged writes were lost: {rows}.", lambda row: _is_first(row) and row["lost"] > 0
        ),
        Note(
            "Acknowledged writes were still missing on a node, and not on all, when the nodes were "
            "near each other again: {rows}.",
            lambda row: _is_first(row) and row["stale"] > 0,
        ),
        Note(
            "Nodes were restarted, as they did not serve when they were near each other again: "
            "{rows}.",
            lambda row: _is_first(row) and row["restarted"] > 0,
        ),
    ),
    charts={"envelope": "wanlat.analysis.charts.envelope:draw"},
    is_trouble=lambda row: bool(row["lost"] or row["hysteresis"] or row["changed"]),
    group=lambda row: row["system"],
    hidden=frozenset({"varied"}),
    tables=(
        Table(
            title="Tested networks",
            rows=_tested,
            columns=(
                Column("test", "{number}"),
                Column("RTT", _network, words=True),
                Column("measured ms", lambda row: digits(row["measured_rtt_ms"], 4)),
                Column("from beyond", lambda row: "yes" if row["after"] else None, words=True),
                Column("trials held", "{held} of {n}"),
                Column("verdict", "{verdict}", words=True),
                Column("written", "{written}"),
                Column("lost", "{lost}"),
                Column("stale", lambda row: str(row["stale"]) if row["stale"] else None),
                Column("first broken", lambda row: row["broken"], words=True),
            ),
            notes=(
                Note(
                    "A test's requests are those of samples.parquet with its number as `rtt_step`; "
                    "its writes are in ledger.jsonl, and how they were read in the round `test N` "
                    "of verification.jsonl; links changed as events.parquet says."
                ),
            ),
            key="tests",
            is_trouble=lambda row: bool(row["lost"] or row["restarted"]),
        ),
    ),
)
