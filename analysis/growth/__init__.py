"""The cost of growth: endpoint latency as a bucket, or a cluster, grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wanlat.analysis.growth.block import GrowthBlock
    from wanlat.analysis.sweep import Sweep


def growth_of(sweep: Sweep) -> GrowthBlock | None:
    """The block "growth" of `sweep`; None where neither bucket nor cluster grows in it."""
    from wanlat.analysis.growth.block import GrowthBlock
    from wanlat.analysis.growth.of_sweep import growths_of

    growths = growths_of(sweep)
    return GrowthBlock(sweep.study, sweep.topology, growths) if growths else None
