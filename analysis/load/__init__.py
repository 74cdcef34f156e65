"""A store under load: operations, their steady state, their errors, and what a quiet user sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.load.block import LoadBlock
    from wanlat.analysis.load.sweep_block import LoadSweepBlock
    from wanlat.analysis.sweep import Sweep


def load_of(bundle: Bundle) -> LoadBlock | None:
    """The block "load" of `bundle`; None where it was not run under load, or not one record is."""
    if not bundle.is_load:
        return None
    from wanlat.analysis.load.block import LoadBlock
    from wanlat.analysis.load.of_bundle import loads_of

    loads = loads_of(bundle)
    return LoadBlock(bundle.study, bundle.topology, loads) if loads else None


def load_of_sweep(sweep: Sweep) -> LoadSweepBlock | None:
    """The block "load" of `sweep`, its deployments side by side; None where none was loaded."""
    from wanlat.analysis.load.of_sweep import deployments_of
    from wanlat.analysis.load.sweep_block import LoadSweepBlock

    deployments = deployments_of(sweep)
    return LoadSweepBlock(sweep.study, sweep.topology, deployments) if deployments else None
