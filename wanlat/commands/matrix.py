"""``wanlat matrix``: many drills on many systems, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wanlat.options import Json
from wanlat.output import emit, say
from wanlat.topologies.errors import UserError


def matrix(
    bundles: Annotated[
        list[Path],
        typer.Argument(
            metavar="BUNDLE...", help="Directories that drills left, or that such lie in."
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the files go; made where it is missing.")
    ],
    as_json: Json = False,
) -> None:
    """Put drills × systems into one picture and two tables.

    That is matrix.png and .svg, matrix.json, drills.md (a row a drill and system) and claims.md
    (claims × systems). Of several runs of one drill on one version of a system the newest complete
    one is shown, how many there are is said, and the worst of their durability verdicts stands, so
    that no newer run hides a loss; matrix.json lists them all. Drills on another topology or at
    another --scale are rows of their own. No verdict changes the exit code: `wanlat drill` gave it.
    """
    import json

    from wanlat.analysis.drill.matrix_report import matrix_report
    from wanlat.bundle.errors import BundleError

    try:
        made = matrix_report(bundles, out)
    except BundleError as error:
        raise UserError(str(error)) from error
    for path in made:
        say(f"written: {path}")
    if as_json:
        emit(json.loads((out / "matrix.json").read_text(encoding="utf-8")))
