"""Mixed load: closed-loop workers, and a probe client beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from wanlat.experiments.config.workloads import PrefillSpec
from wanlat.experiments.kinds.base import StudyKind
from wanlat.systems.engine.protocols import PROTOCOLS, Operation
from wanlat.topologies.findings import Finding
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_model import refused, within

LOADED = {
    name: does
    for protocol in PROTOCOLS.values()
    for does, name in protocol.objects.names.items()
    if does != "list"
}
"""What a mix may have, by S3's name or Bob's. Requests to a system have its own."""

LONGEST_RAMP = Duration(2 * 10**9)
_SHARE_OF_RAMP = 10
_SUM_TOLERANCE = 0.02
"""Shares may be off by so much: 1/3 is written 0.33. As in oneshot."""


def _mix(mix: dict[str, float]) -> dict[str, float]:
    """Refuse endpoints that no load has, and shares that are none."""
    known = list(LOADED)
    findings = []
    for name, share in mix.items():
        if name not in known:
            near = did_you_mean(name, known)
            text = f"{show(name)} is nothing that a load asks for{near}; it has {listing(known)}"
            findings.append(Finding((name,), text, at_key=True))
        if not 0 <= share <= 1:
            findings.append(Finding((name,), f"a share is from 0 to 1, not {share}"))
    if not findings and abs(sum(mix.values()) - 1) > _SUM_TOLERANCE:
        findings = [Finding((), f"shares add up to 1, not to {sum(mix.values()):g}")]
    if findings:
        raise refused(findings)
    return mix


class LoadSpec(StudyKind):
    """What makes a study one of mixed load: closed-loop workers, and a probe client beside them."""

    key = "load"
    purpose = "Makes it a study of mixed load, with the probe beside it as a probe client"
    needs_objects = True
    takes_samples = False

    workers: int = Field(default=16, ge=1, le=10_000, description="Each with a request in flight")
    mix: Annotated[dict[str, float], AfterValidator(_mix)] = Field(
        default={"GetObject": 0.5, "PutObject": 0.5},
        description="Share of each endpoint, by S3's name or Bob's",
    )
    duration: Annotated[Duration, within(Duration(1))] = Field(
        default=Duration(600 * 10**9), description="Of the load"
    )
    rate: float | None = Field(
        default=None,
        gt=0,
        le=1e6,
        description="Requests a second in all. Default: as fast as answers come",
    )
    probe_interval: Annotated[Duration, within(Duration(1))] = Field(
        default=Duration(100 * 10**6), description="Between two requests of the probe client"
    )
    idle: Duration = Field(
        default=Duration(30 * 10**9), description="The probe client alone, before the load"
    )

    key_hints: ClassVar[dict[str, str]] = {
        "object_size": "it is the study's",
        "objects": "`prefill` writes what is read",
        "buckets": "`prefill` says how many",
        "writers": "`workers` read and write; those of `prefill` write before",
        "samples": "the probe client asks every `probe_interval`",
    }

    @property
    def ramp(self) -> Duration:
        """How long it takes until all workers have started: a tenth of the load, 2 s at most."""
        return Duration(min(LONGEST_RAMP.ns, self.duration.ns // _SHARE_OF_RAMP))

    @property
    def reads(self) -> bool:
        """Whether it reads what was there before."""
        return any(self.operations.get(operation) for operation in ("read", "exists"))

    @property
    def operations(self) -> dict[Operation, float]:
        """The mix, by what is done to objects."""
        mix: dict[Operation, float] = {}
        for name, share in self.mix.items():
            mix[LOADED[name]] = mix.get(LOADED[name], 0.0) + share
        return mix

    def check_study(self, prefill: PrefillSpec | None, object_size: Size) -> Iterator[Finding]:
        """Find that there is nothing to read, or objects of another size."""
        if not self.reads:
            return
        nothing = "the load reads, and there is nothing to read"
        if prefill is None:
            yield Finding(("load",), f"{nothing}; `prefill` writes what there is")
        elif not prefill.objects:
            yield Finding(("prefill", "objects"), nothing, see=("load",))
        elif prefill.object_bytes(object_size) != object_size.bytes:
            text = "the load reads and writes objects of one size, the study's `object_size`"
            yield Finding(("prefill", "object_size"), f"{text}; leave it out", see=("load",))
