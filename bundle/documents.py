"""The JSON documents of a bundle as models: what a manifest says, and which calibration there was.

Whoever runs something makes them, whoever reads a bundle gets them checked. A key that is not here
is an error on both sides, so that none is misspelt, and none is read that nobody writes.

Studies, drills, claims, topologies and options are kept as the YAML files have them: their own
models are in other rooms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

SCHEMA_VERSION = 2
"""Of a bundle; a reader refuses what is newer than itself."""

Status = Literal["running", "complete", "interrupted", "failed"]
"""How a run ended; what says `running` and has no process any more was killed."""

OUTCOMES = ("ok", "fail", "unknown")
"""Of a request: acknowledged, certainly not executed, nobody knows."""

Json = dict[str, Any]


class Document(BaseModel):
    """What all documents have in common: no key is unknown, and nothing changes once it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class Program(Document):
    """A program as it was run: its version, and the SHA-256 of its file."""

    name: str
    version: str
    sha256: str | None = None


class LowerBound(Document):
    """What no store beats whose replicas are at the same places; `round_trips` null: not known."""

    endpoint: str
    placement: str
    round_trips: float | None
    why: str


class PromisedRoundTrips(Document):
    """What the system's own protocol takes."""

    endpoint: str
    placement: str
    round_trips: float


class System(Document):
    """A system under test, and what was asked of it."""

    name: str
    version: str
    label: str | None = None
    sha256: str | None = None
    api: str | None = None
    endpoints: Sequence[str] = ()
    options: Json = {}
    beside: Sequence[Program] = ()
    least_round_trips: Sequence[LowerBound] = ()
    promised_round_trips: Sequence[PromisedRoundTrips] = ()


class Place(Document):
    """A node and the site that it is at."""

    node: str
    site: str


class DrillClient(Document):
    """Where a client of a drill runs, and the node that its requests go to."""

    node: str
    site: str
    target: str


class Cpu(Document):
    """The machine's processors."""

    model: str
    cores: int


class Requested(Document):
    """What the command line asked for that no study says."""

    backend: str | None = None
    capture: Json | None = None


class Parameter(Document):
    """A key of a study that is varied, and all its values."""

    name: str
    values: Sequence[Any]


class Budgeted(Document):
    """How many samples a budget left of those that were wanted."""

    system: str
    endpoint: str
    placement: str
    samples: int
    wanted: int
    limited_by: Literal["time", "bytes", "min_samples"] | None
    request_s: float | None
    why: str


class _Manifest(Document):
    """What every manifest says, whatever was run."""

    schema_version: int
    status: Status = "complete"
    reason: str | None = None
    warnings: Sequence[str] = ()
    seed: int = 0
    command: Sequence[str] = ()
    started: str | None = None
    ended: str | None = None
    wanlat: str | None = None
    kernel: str | None = None
    cpu: Cpu | None = None
    memory_bytes: int | None = None
    requested: Requested | None = None


class _OneLab(_Manifest):
    """Of what was run in labs on one topology."""

    topology: Json | None = None
    backend: str | None = None
    storage: str | None = None
    client: Place | None = None
    target: Place | None = None
    systems: Sequence[System] = ()
    tcp: Json | None = None
    capture: Json | None = None
    resources: Json | None = None


class StudyManifest(_OneLab):
    """Of a study on one network; a test of the pytest plugin leaves one too."""

    kind: Literal["study"]
    study: Json
    budget: Sequence[Budgeted] = ()
    load: Mapping[str, Json] = {}
    round_trips: Json | None = None


class DrillManifest(_OneLab):
    """Of a drill. `origin_ns`: the planned begin of its phase `before`."""

    kind: Literal["drill"]
    drill: Json
    roles: Mapping[str, Sequence[str]] = {}
    clients: Mapping[str, DrillClient] = {}
    claims: Sequence[Json] = ()
    stated_time_s: float | None = None
    origin_ns: int | None = None
    reached: str | None = None
    failures: Sequence[str] = ()


class MatrixManifest(_Manifest):
    """Of a study at many points; each has a bundle of its own below `points/`."""

    kind: Literal["matrix"]
    study: Json
    parameters: Sequence[Parameter] = ()
    systems: Sequence[Program] = ()
    topologies: Mapping[str, Json] = {}
    attempts: int = 1
    resumed: Sequence[str] = ()


Manifest = Annotated[StudyManifest | DrillManifest | MatrixManifest, Field(discriminator="kind")]
MANIFEST: TypeAdapter[StudyManifest | DrillManifest | MatrixManifest] = TypeAdapter(Manifest)
