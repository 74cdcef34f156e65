"""Blackhole: packets vanish, and nobody is told. No reset, no error: only silence."""

from __future__ import annotations

from wanlat.emulator.faults.link_fault import LinkFault


class Blackhole(LinkFault):
    """Nothing crosses the links that are named. A node still reaches itself, a site its nodes."""

    kind = "blackhole"
