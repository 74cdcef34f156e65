"""The `load` of a study: who asks for what beside the probe, how much, for how long."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from wanlat.topologies.findings import Finding
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_model import YamlModel

Api = Literal["s3", "bob"]

NAMES = {"GetObject": "Get", "PutObject": "Put", "HeadObject": "Exist", "RemoveObject": "Delete"}
"""What a mix may have, in S3 and in Bob. A system is asked by the name that its API has."""
_OF_BOB = {bob: s3 for s3, bob in NAMES.items()}
_READS = ("GetObject", "HeadObject", *(NAMES[name] for name in ("GetObject", "HeadObject")))

LONGEST_RAMP = Duration(2 * 10**9)
_SHARE_OF_RAMP = 10
_SUM_TOLERANCE = 0.02
"""Shares may be off by so much: 1/3 is written 0.33. As in oneshot."""


class LoadSpec(YamlModel):
    """What makes a study one of mixed load: closed-loop workers, and a quiet user beside them."""

    workers: int = Field(default=16, ge=1, le=10_000, description="Each with a request in flight")
    mix: dict[str, float] = Field(
        default={"GetObject": 0.5, "PutObject": 0.5},
        description="Share of each endpoint, by S3's name or Bob's",
    )
    duration: Duration = Field(default=Duration(600 * 10**9), description="Of the load")
    rate: float | None = Field(
        default=None,
        gt=0,
        le=1e6,
        description="Requests a second in all. Default: as fast as answers come",
    )
    probe_interval: Duration = Field(
        default=Duration(100 * 10**6), description="Between two requests of the quiet user"
    )
    idle: Duration = Field(
        default=Duration(30 * 10**9), description="The quiet user alone, before the load"
    )

    key_hints: ClassVar[dict[str, str]] = {
        "object_size": "it is the study's",
        "objects": "`prefill` writes what is read",
        "buckets": "`prefill` says how many",
        "writers": "`workers` read and write; those of `prefill` write before",
        "samples": "the quiet user asks every `probe_interval`",
    }

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        """Tell of endpoints that no load has, of shares that are none, of times that are nothing.

        ``raw`` is what a document has under `load`.
        """
        if not isinstance(raw, dict):
            return []
        return [*_of_mix(raw.get("mix")), *_of_times(raw)]

    @property
    def ramp(self) -> Duration:
        """How long it takes until all workers have begun: a tenth of the load, 2 s at most."""
        return Duration(min(LONGEST_RAMP.ns, self.duration.ns // _SHARE_OF_RAMP))

    def mix_of(self, api: Api) -> dict[str, float]:
        """Return the mix by the names of an API."""
        mix: dict[str, float] = {}
        for given, share in self.mix.items():
            s3 = _OF_BOB.get(given, given)
            name = s3 if api == "s3" else NAMES[s3]
            mix[name] = mix.get(name, 0.0) + share
        return mix


def reads(mix: Any) -> bool:
    """Does a mix, as a document has it, read what was there before?"""
    given = LoadSpec().mix if mix is None else mix
    return isinstance(given, dict) and any(given.get(name) for name in _READS)


def _of_mix(mix: Any) -> list[Finding]:
    if not isinstance(mix, dict):
        return []
    known = [*NAMES, *_OF_BOB]
    findings = [
        Finding(
            ("mix", name),
            f"{show(name)} is nothing that a load asks for{did_you_mean(str(name), known)}; "
            f"it has {listing(known)}",
            at_key=True,
        )
        for name in mix
        if name not in known
    ]
    shares = [share for share in mix.values() if _is_number(share)]
    if len(shares) < len(mix):
        return findings
    wrong = [(name, share) for name, share in mix.items() if not 0 <= share <= 1]
    findings += [
        Finding(("mix", name), f"a share is from 0 to 1, not {share}") for name, share in wrong
    ]
    if not wrong and abs(sum(shares) - 1) > _SUM_TOLERANCE:
        findings.append(Finding(("mix",), f"shares add up to 1, not to {sum(shares):g}"))
    return findings


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _of_times(raw: dict[str, Any]) -> list[Finding]:
    findings = []
    for name in ("duration", "probe_interval"):
        try:
            is_nothing = raw.get(name) is not None and Duration.parse(raw[name]).ns == 0
        except ValueError:
            continue  # it is told of where it is parsed
        if is_nothing:
            findings.append(Finding((name,), f"`{name}` is nothing"))
    return findings


_DEFAULT_SIZE = "1KiB"


def check_load(raw: dict[str, Any]) -> list[Finding]:
    """Tell of a load that would read what is not there. ``raw`` is a study as a document has it."""
    load = raw.get("load")
    if load is None or (isinstance(load, dict) and not reads(load.get("mix"))):
        return []
    prefill = raw.get("prefill")
    if _is_varied(raw.get("matrix")):
        return []  # each point is looked at by itself
    if prefill is None:
        text = "the load reads, and there is nothing to read; `prefill` writes what there is"
        return [Finding(("load",), text)]
    if not isinstance(prefill, dict):
        return []
    if prefill.get("objects") == 0:
        text = "the load reads, and there is nothing to read"
        return [Finding(("prefill", "objects"), text, see=("load",))]
    return _of_size(raw.get("object_size"), prefill.get("object_size"))


def _is_varied(matrix: Any) -> bool:
    grids = matrix if isinstance(matrix, list) else [matrix]
    names = [str(name) for grid in grids if isinstance(grid, dict) for name in grid]
    return any(name.split(".")[0] in ("prefill", "object_size") for name in names)


def _of_size(of_study: Any, of_prefill: Any) -> list[Finding]:
    """Objects that are read must be of the size that reads are checked for."""
    if of_prefill is None:
        return []
    try:
        same = Size.parse(of_prefill) == Size.parse(_DEFAULT_SIZE if of_study is None else of_study)
    except ValueError:
        return []  # it is told of where it is parsed
    if same:
        return []
    text = "the load reads and writes objects of one size, the study's `object_size`; leave it out"
    return [Finding(("prefill", "object_size"), text, see=("load",))]
