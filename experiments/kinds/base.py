"""What a kind of study is: keys in YAML, and all that is done in another way because of them.

A kind is one module beside this one: a subclass of `StudyKind`, listed in `KINDS`. Its workload is
imported when it runs: pyarrow and scipy would be half a second of `wanlat study list`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from wanlat.systems.engine.protocols import Operation
from wanlat.topologies.findings import Finding
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan
from wanlat.topologies.yaml_model import YamlModel

if TYPE_CHECKING:
    from wanlat.experiments.config.study import Study
    from wanlat.experiments.prepare import Prepared, RequestPlan
    from wanlat.experiments.session import Recording
    from wanlat.experiments.workloads.requests import Workload
    from wanlat.probes.plan import Request

_REQUEST_S = 0.0005  # besides its round trips
Turn = tuple[str, str]
"""An endpoint and a placement."""


@dataclass(frozen=True)
class Pace:
    """The least time that the requests of a system take."""

    bounds: Mapping[str, float]
    """Lower bounds of the round trips of endpoints."""
    rtt_s: float
    """To the nearest node of another site."""

    def one_s(self, endpoint: str, rtt_s: float | None = None) -> float:
        """Return the time of a request; ``rtt_s``: at another RTT."""
        rtt_s = self.rtt_s if rtt_s is None else rtt_s
        return self.bounds.get(endpoint, 0.0) * rtt_s + _REQUEST_S

    def all_s(self, requests: Iterable[Request], rtt_s: float | None = None) -> float:
        """Return the time of requests, one after another."""
        return sum(self.one_s(request.called, rtt_s) for request in requests)

    def write_s(self, requests: RequestPlan) -> float:
        """Return the time to write an object."""
        return self.one_s(requests.objects.name("write")) if requests.objects else 0.0


def counted(requests: Iterable[Request]) -> Counter[Turn]:
    """Return how many requests there are of an endpoint and placement."""
    return Counter((request.called, request.placement) for request in requests)


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

    def check_study(self, study: Study) -> Iterator[Finding]:  # noqa: ARG002
        """Find what does not go together with other keys of the study."""
        yield from ()

    def network(self, topology: Topology) -> Topology:
        """Return the topology that its lab is built and calibrated on."""
        return topology

    def check(self, study: str, plan: Plan) -> None:
        """Raise UserError where a study of that name cannot be measured on a topology."""

    def least_s(self, study: Study, requests: RequestPlan, pace: Pace) -> tuple[float, float]:
        """Return the seconds that it states, and those of its requests, at least."""
        plan, budget = requests.plan(), study.budget
        longest_s = budget.time.s if budget and budget.time else float("inf")
        by_turn = counted(plan.measure).items()
        measured_s = (min(count * pace.one_s(turn[0]), longest_s) for turn, count in by_turn)
        return 0.0, pace.all_s((*plan.prepare, *plan.warmup)) + sum(measured_s)

    @property
    def workload(self) -> type[Workload[Any]]:
        """What each system's part of the run is."""
        from wanlat.experiments.workloads.requests import Workload

        return Workload

    def workloads(self, prepared: Prepared, recording: Recording) -> Sequence[Workload[Any]]:
        """Return the part of the run of each system, in their order."""
        return [self.workload(prepared, subject, recording) for subject in prepared.subjects]


SINGLE_REQUESTS = StudyKind()
"""The kind of a study without a key of another."""
