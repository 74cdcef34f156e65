"""``wanlat merge``: make one bundle of the shards of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from wanlat import options as o
from wanlat.commands.settings import trust
from wanlat.output import inform


def merge(
    bundles: Annotated[list[Path], o.argument("BUNDLE...", "The bundles that `run --shard` left")],
    out: Annotated[Path, o.option("DIR", "Output directory", "--out", "-o")],
    systems: Annotated[
        str | None,
        o.option("DIR,DIR", "Directories of your own systems, whose code may be loaded"),
    ] = None,
    as_json: o.Json = False,
    verbose: o.Verbose = False,
    _quiet: o.Quiet = False,
) -> None:
    """Make one bundle of the shards of a run, and show it.

    They must be of the same study, seed and programs. Points that no shard completed are left to
    `wanlat run --resume`.
    """
    from wanlat.experiments.matrix import merge as merge_bundles
    from wanlat.results import show_any

    trust(systems)
    merged = merge_bundles(bundles, out)
    show_any(merged, as_json=as_json, verbose=verbose)
    inform(f"bundle: {merged}")
