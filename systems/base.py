"""What the other rooms use of a system and of its running cluster."""

from __future__ import annotations

from wanlat.systems.engine.cluster import Cluster
from wanlat.systems.engine.defined import DefinedSystem, Messages, Replicas
from wanlat.systems.engine.options import Options
from wanlat.systems.engine.process import NodeProcess
from wanlat.systems.engine.program import Binary, Companion
from wanlat.systems.engine.protocols import Api, S3Target
from wanlat.systems.engine.system import System
from wanlat.systems.errors import SystemFailed, SystemMissing
from wanlat.systems.placement import Least

__all__ = [
    "Api",
    "Binary",
    "Cluster",
    "Companion",
    "DefinedSystem",
    "Least",
    "Messages",
    "NodeProcess",
    "Options",
    "Replicas",
    "S3Target",
    "System",
    "SystemFailed",
    "SystemMissing",
]
