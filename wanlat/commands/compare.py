"""``wanlat compare``: which endpoints changed between two bundles; made for a store's own CI."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat import options as o
from wanlat.output import append, emit, people, replace_junit
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration
from wanlat.topologies.wording import did_you_mean, listing

if TYPE_CHECKING:
    from collections.abc import Collection

    from wanlat.analysis.compare import Kind, Limit


def _limit(text: str) -> Limit:
    """Parse "10%", "5ms" or "10%,5ms"."""
    from wanlat.analysis.compare import Limit

    parts = [part.strip() for part in text.split(",")]
    shares = [_percent(part) for part in parts if part.endswith("%")]
    times_ms = [Duration.parse(part).ms for part in parts if not part.endswith("%")]
    if len(shares) > 1 or len(times_ms) > 1:
        raise UserError(f"{text!r}: give a percentage, a time, or one of each.")
    return Limit(sum(shares), sum(times_ms))


def _percent(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)\s*%", text.strip())
    if match is None:
        raise UserError(f"{text!r}: write a percentage, as 10%.")
    return float(match[1]) / 100


def compare(
    old: Annotated[Path, o.argument("OLD", "The bundle to compare with")],
    new: Annotated[Path, o.argument("NEW", "The bundle to judge")],
    gate: Annotated[
        str | None,
        o.option(
            "A,B",
            "What may fail the comparison: round-trips, latency, intercept, bytes, outliers, "
            "unexplained, all; failed requests always may (default: round-trips, or latency where "
            "none were measured)",
        ),
    ] = None,
    round_trips: Annotated[float, o.option("N", "Largest increase in round trips", min=0)] = 0.25,
    share: Annotated[
        Any,
        o.option("PERCENT", "Largest share of requests that may gain round trips", parse=_percent),
    ] = "10%",
    latency: Annotated[
        Any,
        o.option(
            "LIMIT",
            "Largest increase in latency: 10%, 5ms, or both: the greater of the two",
            parse=_limit,
        ),
    ] = "10%,5ms",
    renamed: Annotated[
        list[str] | None,
        o.option(
            "OLD=NEW", "Compare a system of OLD with one of another name; may be repeated", "--as"
        ),
    ] = None,
    force: Annotated[
        bool, o.flag("Compare bundles that were measured under other conditions", "--force")
    ] = False,
    allow_missing: Annotated[
        bool, o.flag("Ignore metrics that one run lacks", "--allow-missing")
    ] = False,
    strict: Annotated[
        bool, o.flag("Fail on differences that may be chance, too", "--strict")
    ] = False,
    junit: o.Junit = None,
    page: Annotated[
        Path | None, o.option("FILE", "Append it to this file in Markdown", "--markdown")
    ] = None,
    as_json: o.Json = False,
    _quiet: o.Quiet = False,
) -> None:
    """Report which endpoints changed between two bundles.

    Exit code 1: something that --gate names became worse, or an endpoint is gone.
    """
    from wanlat.analysis.compare import Thresholds, report
    from wanlat.analysis.compare import compare as compared
    from wanlat.analysis.compare.conditions import read
    from wanlat.bundle.errors import refusing

    gated, mapping = None if gate is None else _kinds(gate), _mapping(renamed or [])
    with refusing(old):
        before = read(old)
    with refusing(new):
        comparison = compared(
            before,
            read(new),
            Thresholds(round_trips=round_trips, share=share, latency_ms=latency),
            gate=gated,
            renamed=mapping,
            force=force,
            allow_missing=allow_missing,
            strict=strict,
        )
    report.print_comparison(comparison, people())
    if page is not None:
        append(page, report.page(comparison))
    if junit is not None:
        from wanlat.analysis.report import ci

        cases = ci.cases_of_comparison(report.document(comparison))
        replace_junit(junit, ci.junit([("wanlat compare", cases)]))
    if as_json:
        emit(report.document(comparison))
    if not comparison.passed:
        raise typer.Exit(1)


def _kinds(text: str) -> Collection[Kind]:
    """The kinds that --gate names."""
    from wanlat.analysis.compare import Kind

    names, known = [name.strip() for name in text.split(",")], [*map(str, Kind), "all"]
    for name in names:
        if name not in known:
            near = did_you_mean(name, known)
            raise UserError(f"--gate {name!r}: there are {listing(known)}{near}.")
    return list(Kind) if "all" in names else [Kind(name) for name in names]


def _mapping(given: list[str]) -> dict[str, str]:
    """What --as OLD=NEW maps."""
    mapping: dict[str, str] = {}
    for text in given:
        old, equals, new = text.partition("=")
        if not (old and equals and new):
            raise UserError(f"--as {text!r}: write OLD=NEW, the names of two systems.")
        if old in mapping:
            raise UserError(f"--as {text!r}: {old} is compared with {mapping[old]} already.")
        mapping[old] = new
    return mapping
