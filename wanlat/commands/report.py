"""``wanlat report``: the report of a bundle, from it alone; of several, beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from wanlat import options as o
from wanlat.output import emit, inform, refuse_to_replace, replace_junit
from wanlat.results import messages_of, show_any
from wanlat.topologies.errors import UserError


def report(
    bundles: Annotated[list[Path], o.argument("BUNDLE...", "The directory of a run, or several")],
    out: Annotated[
        Path | None,
        o.option("FILE", "Lay several runs beside each other in this HTML file", "--out", "-o"),
    ] = None,
    index: Annotated[
        bool,
        o.flag("Index of all bundles below these, into the directory -o", "--index"),
    ] = False,
    claims: Annotated[
        bool,
        o.flag("Verdicts on what publications claim, of all bundles below", "--claims"),
    ] = False,
    svg: Annotated[bool, o.flag("Draw an SVG beside each PNG", "--svg")] = False,
    force: o.Force = False,
    junit: o.Junit = None,
    bmf: Annotated[
        bool, o.flag("Print latency and round trips in Bencher Metric Format", "--bmf")
    ] = False,
    as_json: o.Json = False,
    verbose: o.Verbose = False,
    _quiet: o.Quiet = False,
) -> None:
    """Write the summary, tables, charts and page of a bundle again.

    Several bundles are laid beside each other in one HTML page (-o), and left as they are. An
    index has a row for each operation of each system, and one for each drill; claims have a verdict
    on each one of a publication.
    """
    if index or claims:
        if out is None:
            raise UserError("Where to? An index is a page and a chart in a directory: -o DIR.")
        for path in (_claims if claims else _index)(bundles, out, force=force):
            inform(f"written: {path}")
        return
    if out is None and len(bundles) == 1:
        show_any(bundles[0], as_json=as_json and not bmf, verbose=verbose, svg=svg)
        _for_ci(bundles[0], junit, bmf)
        return
    if out is None:
        raise UserError(
            "Where to? Several bundles are laid beside each other in one file: -o FILE."
        )
    if svg or as_json or bmf or junit:
        raise UserError("--svg, --json, --bmf, --junit: of the report of one bundle, without -o.")
    refuse_to_replace([out], force=force)

    from wanlat.analysis.report import beside

    beside(bundles, out, messages_of)
    inform(f"report: {out}")


def _index(bundles: list[Path], out: Path, *, force: bool) -> tuple[Path, ...]:
    from wanlat.analysis.report.index import CHART, PAGE, write_index

    refuse_to_replace([out / PAGE, out / f"{CHART}.png"], force=force)
    return write_index(bundles, out)


def _claims(bundles: list[Path], out: Path, *, force: bool) -> tuple[Path, ...]:
    from wanlat.analysis.report.claims import write_claims
    from wanlat.analysis.report.index import PAGE
    from wanlat.experiments.config.claims import publications

    refuse_to_replace([out / PAGE], force=force)
    return (write_claims(bundles, [publication.to_dict() for publication in publications()], out),)


def _for_ci(bundle: Path, junit: Path | None, bmf: bool) -> None:
    """Write and print what a CI reads, of the summaries that were just written."""
    if junit is None and not bmf:
        return
    from wanlat.analysis.report import ci
    from wanlat.results import summaries

    reports = list(summaries(bundle))
    if junit is not None:
        suites = [
            (document["bundle"]["study"], ci.cases_of_report(document)) for document in reports
        ]
        replace_junit(junit, ci.junit(suites))
    if bmf:
        emit(ci.bencher(reports))
