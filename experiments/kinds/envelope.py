"""What makes a study one of the operating envelope: a promise, and where its limits are sought."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from wanlat.experiments.envelope.search import Axis, SearchPlan, SequentialTest
from wanlat.experiments.kinds.base import StudyKind
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Duration, Fraction
from wanlat.topologies.variants import override
from wanlat.topologies.yaml_model import YamlModel, refused, within

_MS, _S = 10**6, 10**9
_Some = Annotated[Duration, within(Duration(1))]
LONGEST_RTT = Duration(10 * _S)


class RttAxisSpec(YamlModel):
    """The RTTs that are searched."""

    low: _Some = Field(default=Duration(5 * _MS), description="Where the promise is sure to hold")
    high: Annotated[Duration, within(Duration(1), LONGEST_RTT)] = Field(
        default=Duration(2 * _S), description="Beyond it nothing is searched"
    )
    precision: Fraction = Field(
        default=Fraction(0.03), description="By which both ends of a limit that is found differ"
    )

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        _check(self.low, self.high, self.precision)
        return self


_LEVELS = "At which the limit of the RTT is found, too"


class JitterAxisSpec(RttAxisSpec):
    """The jitters that are searched."""

    levels: list[Duration] = Field(default=[], description=_LEVELS)


class LossAxisSpec(YamlModel):
    """The shares of lost packets that are searched."""

    low: Fraction = Field(default=Fraction(0.001), description="Where the promise should hold")
    high: Fraction = Field(default=Fraction(0.5), description="Beyond it nothing is searched")
    precision: Fraction = Field(
        default=Fraction(0.2), description="By which both ends of a limit that is found differ"
    )
    levels: list[Fraction] = Field(default=[], description=_LEVELS)

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        _check(float(self.low), float(self.high), self.precision)
        return self


def _check(low: Duration | float, high: Duration | float, precision: Fraction) -> None:
    if not (isinstance(low, Duration) or low > 0):
        raise refused([Finding(("low",), "ends are searched by their ratio; give more than 0")])
    if not low < high:  # type: ignore[operator]
        raise refused([Finding(("high",), f"{high} is not more than `low`, which is {low}")])
    if float(precision) <= 0:
        raise refused([Finding(("precision",), "no search ends at 0; give more")])


class PromiseSpec(YamlModel):
    """What a cluster must do in a trial."""

    deadline: Annotated[Duration, within(Duration(_MS))] = Field(
        default=Duration(_S), description="Within which a request that is due is answered"
    )
    rate: float = Field(
        default=10, gt=0, le=1000, description="Requests a second, half of them writes"
    )
    share: Fraction = Field(
        default=Fraction(0.99), description="Of requests that are answered in time, at least"
    )
    window: _Some = Field(default=Duration(2 * _S), description="How long a trial looks at them")
    cut: Duration = Field(
        default=Duration(_S),
        description="How long one WAN link of the target's site is cut after that; 0: not at all",
    )
    recovery: Duration = Field(
        default=Duration(5 * _S),
        description="After the cut, until requests are answered in time again",
    )
    leader_stays: bool = Field(
        default=True,
        description="No other node leads at the window's end, where the system has a leader",
    )

    @model_validator(mode="after")
    def _has_requests(self) -> Self:
        """A user has one request in flight, and one due each `deadline`: none waits for another."""
        if self.window < self.deadline:
            text = f"{self.window} is shorter than `deadline`, {self.deadline}"
            raise refused([Finding(("window",), f"{text}: a trial would see no request end")])
        return self

    @property
    def pairs(self) -> int:
        """How many readers, and as many writers, make the rate: one request each a deadline."""
        return max(1, round(self.rate * self.deadline.s / 2))


class EnvelopeSpec(StudyKind):
    """How far apart nodes may be: the network changes under one cluster until that is known."""

    key = "envelope"
    purpose = (
        "Makes it a study of the operating envelope: how far apart nodes may be, and at which "
        "loss, while a promise holds"
    )
    needs_objects = True
    takes_samples = False
    is_resumed = True
    instead: ClassVar = {"rtt": "envelope.rtt.high=500ms", "jitter": "envelope.jitter.high=500ms"}

    promise: PromiseSpec = Field(default=PromiseSpec(), description="What must hold")
    rtt: RttAxisSpec = Field(default=RttAxisSpec(), description="RTTs of every WAN link")
    jitter: JitterAxisSpec | None = Field(
        default=None, description="Jitters. Default: not searched"
    )
    loss: LossAxisSpec | None = Field(default=None, description="Losses. Default: not searched")
    settle: Duration = Field(
        default=Duration(_S),
        description="How long it is at work on a network first; at least four RTTs",
    )
    holds: Fraction = Field(
        default=Fraction(0.95), description="Of trials that hold where the promise is kept"
    )
    fails: Fraction = Field(default=Fraction(0.5), description="And where it is not, at most")
    error: Fraction = Field(default=Fraction(0.05), description="Of verdicts that may be wrong")
    most_trials: int = Field(
        default=12,
        ge=1,
        le=1000,
        description="On one network; where no verdict is reached by then"
        " the promise counts as not kept",
    )
    kills: int = Field(
        default=0,
        ge=0,
        le=100,
        description="How often the node that leads is killed at last, the sites near each other, "
        "until a write is acknowledged again: the price of a timeout",
    )
    regions: str | None = Field(
        default="azure-regions",
        description="A topology whose pairs of sites are drawn beside the limits",
    )

    key_hints: ClassVar[dict[str, str]] = {
        "rtts": "`rtt` takes `low` and `high`; which RTTs are asked, the search decides",
        "deadline": "it is of `promise`",
        "rate": "it is of `promise`",
    }

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not 0 < float(self.fails) < float(self.holds) < 1:
            raise refused(
                [Finding(("fails",), "it is more than 0, less than `holds`, and that < 1")]
            )
        if not 0 < float(self.error) < 0.5:
            raise refused([Finding(("error",), "it is more than 0 and less than 50 %")])
        return self

    @property
    def plan(self) -> SearchPlan:
        """What is searched."""
        rtt, jitter, loss = self.rtt, self.jitter, self.loss
        axes = [Axis("rtt", rtt.low.ms, rtt.high.ms, float(rtt.precision))]
        if jitter is not None:
            ends, levels = (jitter.low.ms, jitter.high.ms), tuple(e.ms for e in jitter.levels)
            axes.append(Axis("jitter", *ends, float(jitter.precision), levels))
        if loss is not None:
            shares, levels = (float(loss.low), float(loss.high)), tuple(map(float, loss.levels))
            axes.append(Axis("loss", *shares, float(loss.precision), levels))
        return SearchPlan(tuple(axes))

    @property
    def test(self) -> SequentialTest:
        """What turns trials into a verdict."""
        shares = float(self.holds), float(self.fails), float(self.error)
        return SequentialTest(*shares, self.most_trials)

    @property
    def outside(self) -> str | None:
        """The topology of its regions."""
        return self.regions

    def network(self, topology: Topology) -> Topology:
        """Return it where the promise is sure to hold."""
        return override(topology, self.rtt.low, Duration(0))

    def check(self, study: str, plan: Plan) -> None:
        """Raise UserError where there is no link to change, or regions that are no topology."""
        if not plan.wan_links:
            raise UserError(
                f"Study {study} changes the links between sites, and topology {plan.name} has one "
                "site. Choose one of several (`--topology`; `wanlat topology list`)."
            )
        if self.regions is not None:
            load_topology(self.regions)
