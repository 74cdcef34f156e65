"""What plans requests of each protocol: a module for each, and the list of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wanlat.probes.header import MAX_MESSAGE_BYTES, Connection, Header, Terms, Window
from wanlat.probes.protocols.base import Planner
from wanlat.probes.protocols.bob import BobPlanner
from wanlat.probes.protocols.exec import ExecPlanner
from wanlat.probes.protocols.grpc import GrpcPlanner
from wanlat.probes.protocols.http import HttpPlanner
from wanlat.probes.protocols.s3 import S3Planner
from wanlat.systems.engine.protocols import Target

PLANNERS: Mapping[str, Planner[Any]] = {
    planner.name: planner
    for planner in (S3Planner(), BobPlanner(), GrpcPlanner(), HttpPlanner(), ExecPlanner())
}
"""By the names of the protocols, as `wanlat.systems.engine.protocols` lists them."""


def header_to(
    target: Target,
    *,
    deadline_ms: int,
    connection: Connection = "keep-alive",
    max_message_bytes: int = MAX_MESSAGE_BYTES,
    window: Window = "large",
) -> Header:
    """Return the header of requests to a node."""
    terms = Terms(deadline_ms, connection, max_message_bytes, window)
    planner = next(made for made in PLANNERS.values() if isinstance(target, made.target))
    return planner.header_to(target, terms)
