"""What a study of mixed load needs besides its `load`."""

from __future__ import annotations

from typing import Any

from wanlat.experiments.load.model import reads
from wanlat.topologies.findings import Finding
from wanlat.topologies.units import Size

_DEFAULT_SIZE = "1KiB"


def check_load(raw: dict[str, Any]) -> list[Finding]:
    """Tell of a load that would read what is not there. ``raw`` is a study as a document has it."""
    load = raw.get("load")
    if load is None or (isinstance(load, dict) and not reads(load.get("mix"))):
        return []
    prefill = raw.get("prefill")
    if _is_swept(raw.get("sweep")):
        return []  # each point is looked at by itself
    if prefill is None:
        text = "the load reads, and there is nothing to read; `prefill` writes what there is"
        return [Finding(("load",), text)]
    if not isinstance(prefill, dict):
        return []
    if prefill.get("objects") == 0:
        text = "the load reads, and there is nothing to read"
        return [Finding(("prefill", "objects"), text, see=("load",))]
    return _of_size(raw.get("object_size"), prefill.get("object_size"))


def _is_swept(sweep: Any) -> bool:
    grids = sweep if isinstance(sweep, list) else [sweep]
    names = [str(name) for grid in grids if isinstance(grid, dict) for name in grid]
    return any(name.split(".")[0] in ("prefill", "object_size") for name in names)


def _of_size(of_study: Any, of_prefill: Any) -> list[Finding]:
    """Objects that are read must be of the size that reads are checked for."""
    if of_prefill is None:
        return []
    try:
        same = Size.parse(of_prefill) == Size.parse(_DEFAULT_SIZE if of_study is None else of_study)
    except ValueError:
        return []  # it is told of where it is parsed
    if same:
        return []
    text = "the load reads and writes objects of one size, the study's `object_size`; leave it out"
    return [Finding(("prefill", "object_size"), text, see=("load",))]
