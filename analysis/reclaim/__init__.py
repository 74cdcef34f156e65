"""Whether a store gives disk space back after objects were removed, and how long it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.reclaim.block import ReclaimBlock
    from wanlat.analysis.sweep import Sweep


def reclaim_of(bundle: Bundle) -> ReclaimBlock | None:
    """The block "reclaim" of `bundle`; None where nothing was removed and watched."""
    from wanlat.analysis.reclaim.block import block_of

    return block_of(bundle)


def reclaim_of_sweep(sweep: Sweep) -> ReclaimBlock | None:
    """The block "reclaim" of all points of `sweep` together; None where none watched."""
    from wanlat.analysis.reclaim.block import block_of_sweep

    return block_of_sweep(sweep)
