"""What a node pays: memory, CPU, files, disk and network beside the latencies of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.resources.block import ResourcesBlock
    from wanlat.analysis.resources.sweep_block import ResourcesOfSweep
    from wanlat.analysis.sweep import Sweep


def resources_of(bundle: Bundle) -> ResourcesBlock | None:
    """The block "resources" of `bundle`; None where nothing was sampled."""
    from wanlat.analysis.resources.block import block_of

    return block_of(bundle)


def resources_of_sweep(sweep: Sweep) -> ResourcesOfSweep | None:
    """The block "resources" of `sweep`, point by point; None where nothing was sampled."""
    from wanlat.analysis.resources.sweep_block import block_of_sweep

    return block_of_sweep(sweep)
