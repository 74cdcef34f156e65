"""What a kind of study is: keys in YAML, and what is checked in another way because of them.

A kind is one module beside this one, a subclass of `StudyKind`, listed in `KINDS`. What it does on
a cluster is a subclass of `Workload`, in a module of `experiments.workloads`, listed in `WORKLOADS`
(`experiments.run`): pyarrow and scipy would be half a second of `wanlat study list`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from wanlat.experiments.config.workloads import PrefillSpec
from wanlat.systems.engine.protocols import Operation
from wanlat.topologies.findings import Finding
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Size
from wanlat.topologies.yaml_model import YamlModel


class StudyKind(YamlModel):
    """A kind of study, by the key that makes a study one. This: single requests on one network."""

    key: ClassVar[str] = ""
    purpose: ClassVar[str] = ""
    """What the key does, in a sentence."""
    excludes: ClassVar[Mapping[str, str]] = {}
    """Other keys of a study that it cannot have, and why."""
    needs_objects: ClassVar[bool] = False
    """Whether it writes and reads objects."""
    takes_samples: ClassVar[bool] = True
    """Whether it takes the study's `samples`."""
    records_packets: ClassVar[bool] = False
    """Whether packets are recorded unless the user wants none."""
    is_resumed: ClassVar[bool] = False
    """Whether a run that ended early goes on where it was: then one run is a point by itself."""
    instead: ClassVar[Mapping[str, str]] = {}
    """What is set in place of the options `rtt` and `jitter`, where it changes the links itself."""

    @property
    def total_steps(self) -> int:
        """How many times all samples are taken."""
        return 1

    @property
    def operations(self) -> Mapping[Operation, float]:
        """What it does to objects besides the samples, with the share of each."""
        return {}

    @property
    def doubts(self) -> list[str]:
        """What cannot come of it as it is set, in sentences."""
        return []

    @property
    def outside(self) -> str | None:
        """A topology that it reads besides the study's."""
        return None

    def check_study(
        self,
        prefill: PrefillSpec | None,  # noqa: ARG002
        object_size: Size,  # noqa: ARG002
    ) -> Iterator[Finding]:
        """Find what does not go together with these keys of the study."""
        yield from ()

    def network(self, topology: Topology) -> Topology:
        """Return the topology that its lab is built and calibrated on."""
        return topology

    def check(self, study: str, plan: Plan) -> None:
        """Raise UserError where a study of that name cannot be measured on a topology."""


SINGLE_REQUESTS = StudyKind()
"""The kind of a study without a key of another."""
