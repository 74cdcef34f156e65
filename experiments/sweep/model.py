"""The `sweep` of a study: which of its parameters take which values."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from wanlat.topologies.wording import show


def _union(raw: Any) -> Any:
    """Take one grid for a union of one."""
    grids = [raw] if isinstance(raw, dict) else raw
    if not isinstance(grids, list | tuple) or not grids:
        text = (
            f"{show(raw)} is no sweep; it is a mapping of parameters to lists of values, such as "
            "`{nodes: [1, 2, 4]}`, or a list of such mappings"
        )
        raise PydanticCustomError("sweep", "{text}", {"text": text})
    return grids


Grid = dict[str, Annotated[list[Any], Field(min_length=1)]]
"""Parameters, dotted for inner ones, with the values that each takes: all combinations."""
Sweep = Annotated[list[Annotated[Grid, Field(min_length=1)]], BeforeValidator(_union)]
"""The union of its grids."""
