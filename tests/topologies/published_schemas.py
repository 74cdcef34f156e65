"""What containerlab and Chaos Mesh publish of their formats, as far as the exports use it.

Described in our own words after
- schemas/clab.schema.json of github.com/srl-labs/containerlab, commit 39ff2b7 (2026-08-21), and
  the flags of `containerlab tools netem set` in cmd/tools_netem.go;
- config/crd/bases/chaos-mesh.org_networkchaos.yaml of github.com/chaos-mesh/chaos-mesh, commit
  608b61e (2026-08-07), with what its webhook checks besides (`Rate`, `FloatStr`, `Duration`) and
  what its daemon makes of the texts (pkg/chaosdaemon/tc_server.go).

Every model forbids keys that it does not name: an export that uses more has to be checked anew.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


# containerlab


class ClabNode(Strict):
    group: str
    exec: Annotated[list[str], Field(min_length=1)]
    sysctls: dict[str, str | int | float] = {}


class ClabDefaults(Strict):
    kind: Literal["linux"]  # of an enumeration
    image: str


class ClabEndpoint(Strict):
    node: str
    interface: str
    mac: Annotated[str, Field(pattern=r"^(?:[0-9A-Fa-f]{2}[:-]){5}(?:[0-9A-Fa-f]{2})")]


class ClabVeth(Strict):
    type: Literal["veth"]
    endpoints: Annotated[list[ClabEndpoint], Field(min_length=2, max_length=2)]


class ClabTopology(Strict):
    defaults: ClabDefaults
    nodes: dict[Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9-._|]*$")], ClabNode]
    links: Annotated[list[ClabVeth], Field(min_length=1)]


class Clab(Strict):
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9-._]*$")]
    topology: ClabTopology


NETEM_SET = {"-n", "-i", "--delay", "--jitter", "--loss", "--rate", "--corruption"}


# Chaos Mesh


def _not_less_than_0ms(text: str) -> str:
    # The daemon compares texts; what is not "greater" than 0ms it leaves out without a word.
    assert text > "0ms", f"the daemon would leave {text} out"
    return text


def _float_text(text: str) -> str:
    assert 0 < float(text) <= 100
    return text


Duration = Annotated[
    str,
    Field(pattern=r"^[0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h)$"),
    AfterValidator(_not_less_than_0ms),
]
FloatStr = Annotated[str, AfterValidator(_float_text)]
# The webhook parses the number with ParseUint: no decimals.
Rate = Annotated[str, Field(pattern=r"^[0-9]+(k|m|g|t)?(bit|bps)$")]
# RFC 1123, as Kubernetes wants names; label values are of the same letters, at most 63.
K8sName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=253)]
LabelValue = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]


class Selector(Strict):
    labelSelectors: dict[str, LabelValue]  # noqa: N815


class Target(Strict):
    mode: Literal["one", "all", "fixed", "fixed-percent", "random-max-percent"]
    selector: Selector


class Reorder(Strict):
    reorder: FloatStr
    gap: int


class Delay(Strict):
    latency: Duration
    jitter: Duration | None = None
    reorder: Reorder | None = None


class Loss(Strict):
    loss: FloatStr


class Duplicate(Strict):
    duplicate: FloatStr


class Corrupt(Strict):
    corrupt: FloatStr


class RateSpec(Strict):
    rate: Rate


class NetworkChaosSpec(Strict):
    action: Literal["netem", "delay", "loss", "duplicate", "corrupt", "partition", "bandwidth"]
    mode: Literal["one", "all", "fixed", "fixed-percent", "random-max-percent"]
    selector: Selector
    direction: Literal["to", "from", "both"]
    target: Target
    delay: Delay | None = None
    loss: Loss | None = None
    duplicate: Duplicate | None = None
    corrupt: Corrupt | None = None
    rate: RateSpec | None = None


class Metadata(Strict):
    name: K8sName


class NetworkChaos(Strict):
    apiVersion: Literal["chaos-mesh.org/v1alpha1"]  # noqa: N815
    kind: Literal["NetworkChaos"]
    metadata: Metadata
    spec: NetworkChaosSpec


def milliseconds(text: str) -> float:
    """What a duration of Go's is."""
    match = re.fullmatch(r"([0-9.]+)(ns|us|ms|s)", text)
    assert match is not None, text
    return float(match[1]) * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[match[2]]
