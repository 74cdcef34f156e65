"""``wanlat compare``: which endpoints changed between two bundles; made for a store's own CI."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wanlat.options import Json
from wanlat.output import emit, people
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.wording import did_you_mean, listing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from wanlat.analysis.compare import Kind, Limit

ALL = "all"


def compare(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The bundle to compare with.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The bundle to judge.")],
    gate: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="What may fail it: round-trips, latency, intercept, bytes, outliers, unexplained, "
            "all. Failed requests always may. Default: round-trips; latency where none were "
            "measured.",
        ),
    ] = None,
    round_trips: Annotated[
        float, typer.Option(min=0, help="More than this many round trips more is worse.")
    ] = 0.25,
    share: Annotated[
        str,
        typer.Option(
            metavar="PERCENT",
            help="Nor may more requests than this gain as many, though most do not.",
        ),
    ] = "10%",
    latency: Annotated[
        str,
        typer.Option(
            metavar="LIMIT", help="Of latencies: 10%, 5ms, or both: the greater of the two."
        ),
    ] = "10%,5ms",
    intercept: Annotated[
        str, typer.Option(metavar="LIMIT", help="Of the store's own time, at RTT 0.")
    ] = "5ms",
    wan_bytes: Annotated[
        str, typer.Option("--bytes", metavar="LIMIT", help="Of WAN bytes a request.")
    ] = "10%,512B",
    packets: Annotated[
        str, typer.Option(metavar="LIMIT", help="Of WAN packets a request.")
    ] = "10%,2",
    failures: Annotated[
        str, typer.Option(metavar="PERCENT", help="More requests than this failing is worse.")
    ] = "0%",
    at: Annotated[
        str | None,
        typer.Option(
            metavar="RTT",
            help="Where latencies of studies of round trips are compared. Default: the greatest "
            "RTT that both measured, up to 100ms.",
        ),
    ] = None,
    renamed: Annotated[
        list[str] | None,
        typer.Option(
            "--as", metavar="OLD=NEW", help="Hold a system of OLD against another one of NEW."
        ),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Compare what was not measured alike, and say so.")
    ] = False,
    allow_missing: Annotated[
        bool,
        typer.Option("--allow-missing", help="What one of them has no figure of fails nothing."),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="What is beyond its threshold fails even where it may be chance."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell which endpoints changed from OLD to NEW, with intervals.

    Exit code 1: something that the gate looks at became worse, or an endpoint is gone.
    """
    from wanlat.analysis.bundle import read_bundle
    from wanlat.analysis.compare import Thresholds
    from wanlat.analysis.compare import compare as compared
    from wanlat.analysis.compare.document import document
    from wanlat.analysis.compare.table import print_comparison
    from wanlat.bundle.errors import BundleError

    thresholds = Thresholds(
        round_trips=round_trips,
        share=_percent("--share", share),
        intercept_ms=_limit("--intercept", intercept, _ms),
        latency_ms=_limit("--latency", latency, _ms),
        wan_bytes=_limit("--bytes", wan_bytes, _bytes),
        wan_packets=_limit("--packets", packets, _packets),
        failures=_percent("--failures", failures),
    )
    kinds, mapping = _kinds(gate), _mapping(renamed or [])
    try:
        comparison = compared(
            read_bundle(old),
            read_bundle(new),
            thresholds,
            gate=kinds,
            renamed=mapping,
            at_rtt_ms=None if at is None else _ms("--at", at),
            anyway=anyway,
            allow_missing=allow_missing,
            strict=strict,
        )
    except BundleError as error:
        raise UserError(str(error)) from error
    print_comparison(comparison, people)
    if as_json:
        emit(document(comparison))
    if not comparison.passed:
        raise typer.Exit(1)


def _kinds(text: str | None) -> Collection[Kind] | None:
    """The kinds that --gate names; None: the default."""
    from wanlat.analysis.compare import Kind

    if text is None:
        return None
    known = [str(kind) for kind in Kind]
    names = [name.strip() for name in text.split(",")]
    if names == [ALL]:
        return list(Kind)
    for name in names:
        if name not in known:
            raise UserError(
                f"--gate {name!r}: there are {listing([*known, ALL])}"
                f"{did_you_mean(name, [*known, ALL])}."
            )
    return [Kind(name) for name in names]


def _mapping(given: list[str]) -> dict[str, str]:
    """What --as OLD=NEW maps."""
    mapping: dict[str, str] = {}
    for text in given:
        old, equals, new = text.partition("=")
        if not (old and equals and new):
            raise UserError(f"--as {text!r}: write OLD=NEW, the names of two systems.")
        if old in mapping:
            raise UserError(f"--as {text!r}: {old} is held against {mapping[old]} already.")
        mapping[old] = new
    return mapping


def _limit(option: str, text: str, amount: Callable[[str, str], float]) -> Limit:
    """The limit that "10%", "5ms" or "10%,5ms" stand for. Raises UserError."""
    from wanlat.analysis.compare import Limit

    relative = absolute = None
    for part in (part.strip() for part in text.split(",")):
        if part.endswith("%") and relative is None:
            relative = _percent(option, part)
        elif not part.endswith("%") and absolute is None:
            absolute = amount(option, part)
        else:
            raise UserError(f"{option} {text!r}: give a percentage, an amount, or one of each.")
    return Limit(relative or 0.0, absolute or 0.0)


def _percent(option: str, text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)\s*%", text.strip())
    if found is None:
        raise UserError(f"{option} {text!r}: write a percentage, as 10%.")
    return float(found[1]) / 100


def _ms(option: str, text: str) -> float:
    try:
        return Duration.parse(text).ms
    except UserError as error:
        raise UserError(f"{option}: {error}") from None


def _bytes(option: str, text: str) -> float:
    try:
        return float(Size.parse(text).bytes)
    except UserError as error:
        raise UserError(f"{option}: {error}") from None


def _packets(option: str, text: str) -> float:
    if not re.fullmatch(r"\d+(?:\.\d+)?", text):
        raise UserError(f"{option} {text!r}: write a number of packets, or a percentage.")
    return float(text)
