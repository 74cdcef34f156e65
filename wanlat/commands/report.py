"""``wanlat report``: summary and charts from a bundle alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wanlat import options as o
from wanlat.results import show_any


def report(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="The directory of a run")],
    svg: Annotated[bool, typer.Option("--svg", help="Draw an SVG beside each PNG")] = False,
    as_json: o.Json = False,
    verbose: o.Verbose = False,
    _quiet: o.Quiet = False,
) -> None:
    """Write the summary, tables and charts of a bundle again."""
    show_any(bundle, as_json=as_json, verbose=verbose, svg=svg)
