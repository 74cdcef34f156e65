"""Requests that a program makes: it reads one a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from wanlat.probes.header import Header
from wanlat.probes.protocols.base import Planner
from wanlat.systems.engine.protocols import ProgramTarget


@dataclass(frozen=True)
class ExecHeader(Header):
    """The first line of a plan of requests that a program makes.

    With ``connection`` new the program is started for each request, before the clock is.
    """

    subcommand: ClassVar[str] = "exec"
    starting_s: ClassVar[float] = 30.0
    """Until the program is ready: `START_NS` of oneshot's exec."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to oneshot's."""


class ExecPlanner(Planner[ProgramTarget]):
    """Operations of a program."""

    name, target, header = "exec", ProgramTarget, ExecHeader
    written = "the operations of its definition's program, written `{op: NAME}`"
