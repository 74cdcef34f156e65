"""The JSON documents of a bundle as models: the contents of each file, and their units.

Whoever runs something makes them, whoever reads a bundle gets them checked. A key that is not here
is an error on both sides, so that none is misspelt, and none is read that is never written; what is
`Json` is a document of another room's, or, as docs/reference/bundle.md states, of one writer and
one reader. Instants are CLOCK_MONOTONIC in nanoseconds, as those of samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from statistics import median
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from wanlat.bundle import beneath

SCHEMA_VERSION = 2
"""Of a bundle; a reader refuses what is newer than itself."""

Status = Literal["running", "complete", "interrupted", "failed"]
"""How a run ended; what is `running` and has no process any more was killed."""

NOT_SENT = "not_sent"
OUTCOMES = ("ok", "fail", "unknown", NOT_SENT)
"""Of a request: acknowledged, certainly not executed, not known, not sent by this machine."""
LOCAL, REMOTE, UNKNOWN = "local", "remote", "unknown"
PLACEMENTS = (LOCAL, REMOTE, UNKNOWN)
"""Of a request's key: whether the target node has a replica of it; in the order of tables."""
DECIDING = ("window", "cut", "back")
"""The phases of an envelope's trials that its verdicts rest on."""
Affected = Literal["links", "processes", "disks"]
"""What a fault hits: the way between nodes, what runs on them, what they store on."""
MISSED = "found nothing"
"""How the error of a removal begins, on a ledger, that did not find what had been acknowledged."""

Json = dict[str, Any]
Span = tuple[int, int]
"""Begin and end, ns."""
Verdict = Literal["pass", "fail"]


class Document(BaseModel):
    """What all documents have in common: no key is unknown, and nothing changes once it is read."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        protected_namespaces=(),
        populate_by_name=True,
        serialize_by_alias=True,
    )

    FILE: ClassVar[str]
    """The name of its file, of those that are one of their own."""


class Open(Document):
    """A document of which only the keys that someone reads are listed."""

    model_config = ConfigDict(extra="allow")


class Growing(Document):
    """A document that is filled in while something lasts; what was not reached is null."""

    model_config = ConfigDict(frozen=False, validate_assignment=True)


class Program(Document):
    """A program as it was run: its version, and the SHA-256 of its file.

    `files_sha256` is of all that was installed with it, `packages` are the versions of that,
    dependencies too, and `toolchain` what built it.
    """

    name: str
    version: str
    sha256: str | None = None
    files_sha256: str | None = None
    packages: Mapping[str, str] = {}
    toolchain: Sequence[str] = ()


class Promised(Open):
    """What is known of an endpoint's round trips before they are measured; null: nothing."""

    endpoint: str
    placement: str | None = None
    round_trips: int | float | None = None
    why: str | None = None


class Timeout(Document):
    """A timeout of a store as it was, ms; `role`: what it is for, `option`: what sets it.

    `rtts`: its makers' rule, at least so many round-trip times. `follows`: what it moves with.
    """

    name: str
    role: str
    option: str
    ms: float
    default_ms: float
    rtts: float | None = None
    follows: str | None = None


class System(Program):
    """A system under test, its endpoints and options, and the programs `beside` it.

    `title`: its name for people, as its makers write it; null: its name will do.
    `objects`: its endpoint for each operation on objects: write, read, delete, exists, list;
    `roles`: the nodes that have a part of their own, such as its `leader`;
    `least_round_trips`: what no store beats with replicas at the same places, and why;
    `promised_round_trips`: what the system's own protocol takes; `decides`: of endpoints with
    requests that differ in round trips, what decides that. `remarks`: what the topology forces,
    such as a site without which no write is acknowledged. `files`: the SHA-256 of every other file
    that takes part, and the text of those that are its `definition`.
    """

    files: Mapping[str, str] = {}
    definition: Mapping[str, str] = {}
    title: str | None = None
    label: str | None = None
    api: str | None = None
    objects: Mapping[str, str] = {}
    endpoints: Sequence[str] = ()
    options: Json = {}
    timeouts: Sequence[Timeout] = ()
    roles: Mapping[str, Sequence[str]] = {}
    remarks: Sequence[str] = ()
    beside: Sequence[Program] = ()
    least_round_trips: Sequence[Promised] = ()
    promised_round_trips: Sequence[Promised] = ()
    decides: Mapping[str, str] = {}


class Titles(dict[str, str]):
    """Titles of systems by their names; that of a system without one is its name."""

    def __missing__(self, name: str) -> str:
        """The name itself."""
        return name


class ProgramOverhead(Document):
    """How long the program that makes a system's requests took to do nothing, `n` times."""

    command: Sequence[str]
    n: int
    median_ms: float
    p99_ms: float


class Parameter(Document):
    """A key of a study that is varied, and all its values."""

    name: str
    values: Sequence[Any]


class EffectiveSetting(Document):
    """A setting as running servers had it in effect, on `nodes`, and what was configured.

    `value` is null where it could not be read back, for the reason `error`.
    """

    name: str
    nodes: Sequence[str]
    value: Any = None
    expected: Any = None
    error: str | None = None
    as_expected: bool


class Budgeted(Document):
    """How many samples a budget left of those that were wanted. `limited_by` `min_samples`: a limit
    would have left fewer. `request_s`: the median of the warm-up.
    """

    system: str
    endpoint: str
    placement: str
    samples: int
    wanted: int
    limited_by: Literal["time", "bytes", "min_samples"] | None
    request_s: float | None
    why: str


class LoadClient(Document):
    """What the load generator took, as shares of the time that the load lasted.

    `cores`: that it may use; in a lab the store's processes are on the same ones. `cpu_share` is of
    all of them; those of the busiest thread, and of verifying bodies, of one core. Of a worker's
    time, on average: `waited_share`, it could have run and there was no core (null: not known);
    `computed_share`, it ran; `between_share`, it had started, and no request was in flight.
    """

    cores: int
    cpu_s: float
    cpu_share: float
    threads: int
    busiest_thread_share: float
    verify_share: float
    waited_share: float | None
    computed_share: float
    between_share: float


class Named(Open):
    """A study, a drill or a topology, as the file of it that was run."""

    name: str | None = None
    description: str | None = None


class Study(Named):
    """A study, or that of a whole matrix."""

    endpoints: Sequence[str | Json] = ()
    systems: Sequence[str] = ()
    nodes: int | None = None
    samples: Any = None
    object_size: Any = None
    options: Mapping[str, Any] | None = None
    prefill: Json | None = None
    key_mode: Any = None
    load: Json | None = None
    reclaim: Json | None = None
    round_trips: Json | None = None
    envelope: Json | None = None


class Drill(Named):
    """A drill: times are numbers of seconds, or such as "90s"."""

    phases: Mapping[str, str | float] = {}
    interval: str | float | None = None
    deadline: str | float | None = None
    scale: float | None = None
    operations: Sequence[str] | None = None
    faults: Sequence[Json] = ()


class Site(Open):
    """A site: names of its nodes, or objects with a name, or how many there are."""

    name: str
    nodes: Sequence[str | Json] | Annotated[int, Field(ge=0)] = ()


class Links(Open):
    """The impairments of links, and of single ones."""

    default: Json | None = None
    pairs: Sequence[Json] = ()


MAX_NODES = 100_000
"""Of a topology (`topologies.limits`, which a reader does not import): a count becomes names."""


class Topology(Named):
    """A topology."""

    sites: Sequence[Site] = ()
    links: Links | None = None

    @field_validator("sites")
    @classmethod
    def _are_no_more_than_a_topology_has(cls, sites: Sequence[Site]) -> Sequence[Site]:
        counts = (site.nodes for site in sites if isinstance(site.nodes, int))
        if sum(counts) > MAX_NODES:
            raise ValueError(f"has more than {MAX_NODES:,} nodes")
        return sites

    @property
    def site_of_node(self) -> dict[str, str]:
        """The site of each node; where a site has a count they are `dc1-1`, `dc1-2`, …."""
        sites: dict[str, str] = {}
        for site in self.sites:
            nodes = site.nodes
            if isinstance(nodes, int):
                nodes = [f"{site.name}-{number}" for number in range(1, nodes + 1)]
            for node in nodes:
                sites[node if isinstance(node, str) else str(node.get("name"))] = site.name
        return sites


class Place(Open):
    """A node, and its site."""

    node: str | None = None
    site: str | None = None


class DrillClient(Open):
    """A client of a drill, and the node that it sends to."""

    node: str
    site: str
    target: str


class Cpu(Open):
    """A machine's processors."""

    model: str | None = None
    cores: int | None = None


class CaptureFile(Open):
    """A packet record of one system; `ended`: why before the run did."""

    system: str | None = None
    packets: int | None = None
    ended: str | None = None


class Capture(Open):
    """The packet records of a run; `table_error`: why there is no table of them."""

    files: Sequence[CaptureFile] = ()
    table_error: str | None = None


class Offered(Open):
    """What a load was to be; `rate` a second, null: as fast as the workers can."""

    workers: int
    rate: float | None = None


class Load(Open):
    """What was offered and achieved under load."""

    offered: Offered | None = None
    probe_from: str | None = None
    client: LoadClient | None = None
    began_ns: int | None = None
    ended_ns: int | None = None
    ramp_ms: int | float | None = None
    bottleneck: str | None = None
    probe_late: int | None = None
    probe_left_out: int | None = None
    left_out: int | None = None
    probe_interval_ms: float | None = None


class Sampling(Open):
    """How resources were sampled, and at what cost; `stretched`, `failed`: why not as requested."""

    every_s: int | float | None = None
    cost_cpu_share: int | float | None = None
    late_p99_ms: int | float | None = None
    stretched: str | None = None
    failed: str | None = None


class Manifest(Document):
    """What a run was, and how it ended; of what was never known the keys are absent.

    A matrix, and a run of several drills, has a bundle of each of its points below `points/`. A
    test of the pytest plugin leaves a study's.
    """

    schema_version: int
    """Of the bundle; another version is refused."""
    kind: Literal["study", "drill", "matrix", "drills"]
    """What was run; `matrix` and `drills` have points."""
    status: Status = "complete"
    """`running`: under way, or killed."""
    reason: str | None = None
    """Why it ended early."""
    warnings: Sequence[str] = ()
    """What a reader must know."""
    seed: int | None = Field(None, ge=0)
    """Of every random choice."""
    command: Sequence[str] = ()
    """The command line."""
    started: str | None = None
    """Wall-clock time."""
    ended: str | None = None
    """Wall-clock time."""
    wall_s: float | None = None
    """How long it took; absent where it was resumed."""
    wanlat: str | None = None
    """The version that wrote it."""
    host: str | None = None
    """The machine's name."""
    kernel: str | None = None
    """Its release."""
    cpu: Cpu | None = None
    """Model and number of processors."""
    memory_bytes: int | None = None
    """Of the machine."""
    requested: Json | None = None
    """What the command line requested that is in no study."""
    claims: Sequence[Json] = ()
    """Those that are judged, as their files have them."""
    systems: Sequence[System] = ()
    """What was measured."""
    instruments: Sequence[Program] = ()
    """The programs of wanlat's own that measured it."""
    study: Study | None = None
    """The study as it was run, defaults filled in."""

    # Of what was run in labs on one topology.
    topology: Topology | None = None
    """As its file has it; loads to an equal topology."""
    backend: str | None = None
    """`netem` or `wire`."""
    storage: str | None = None
    """Where the stores' data were: `memory` or `disk`."""
    client: Place | None = None
    """Node and site where the client ran."""
    target: Place | None = None
    """Node and site that requests went to."""
    tcp: Mapping[str, int | str] | None = None
    """The kernel's settings, by name."""
    capture: Capture | None = None
    """The packet record: limits, packets, missing ones, and why it ended."""
    resources: Sampling | None = None
    """What sampling them cost."""
    max_network_error_ms: float | None = None
    """The network may have been so late during a request that counts; absent: not known."""
    program_overhead: Mapping[str, ProgramOverhead] = {}
    """Of systems with a program that makes their requests, by their names."""
    settings: Mapping[str, Sequence[EffectiveSetting]] = {}
    """What the running servers had in effect, by system."""
    budget: Sequence[Budgeted] = ()
    """How many samples were planned, and why."""
    load: Mapping[str, Load] = {}
    """What was offered and achieved, by system."""
    round_trips: Json | None = None
    """Where the time of a study of round trips went, in seconds."""

    # Of a drill.
    drill: Drill | None = None
    """The drill as it was run, its times multiplied by `scale`."""
    roles: Mapping[str, Sequence[str]] = {}
    """The nodes of each."""
    clients: Mapping[str, DrillClient] = {}
    """`node`, `site` and `target` of each."""
    stated_time_s: float | None = None
    """How long it was to take at most."""
    origin_ns: int | None = None
    """The planned begin of its phase `before`."""
    reached: str | None = None
    """The last stage: `lab`, `calibrated`, `ready`, `filled`, a phase, `healed`, … `done`."""
    failures: Sequence[str] = ()
    """What did not hold, besides what samples and ledger show."""

    # Of several drills.
    drills: Sequence[Json] = ()
    """Each as its file has it."""
    how: Json | None = None
    """On which systems, how often, and what else the command line set."""

    # Of both, and of a matrix.
    parameters: Sequence[Parameter] = ()
    """What is varied."""
    topologies: Mapping[str, Json] = {}
    """Those that it was started with, by name."""
    adopted: Mapping[str, str] = {}
    """The directories of systems of the user's own."""
    attempts: int = 1
    """How often it was started."""
    resumed: Sequence[str] = ()
    """When."""
    shard: str | None = None
    """Which part of its points this is, such as "2/4"."""
    parts: Sequence[Json] = ()
    """Of a bundle that was merged: where and when each part was measured."""
    jobs: Sequence[Json] = ()
    """How many points were allowed at once, when, how busy the processors were, and which share of
    the time networks were too late."""

    @property
    def subject(self) -> Study | Drill | None:
        """The study or the drill that was run; of a run of several drills there is none."""
        return self.drill if self.kind == "drill" else self.study

    @property
    def site_of_node(self) -> dict[str, str]:
        """The site of each node of the topology; empty without one."""
        return self.topology.site_of_node if self.topology else {}

    def site_of(self, name: str) -> str:
        """The site of a node, or of a site; what the topology does not know is its own site."""
        return self.site_of_node.get(name, name)

    def system(self, name: str) -> System | None:
        """The system of that name; None where it was not measured."""
        return next((system for system in self.systems if system.name == name), None)


def titles_of(*manifests: Manifest) -> Titles:
    """The titles of the systems that runs measured; what two systems are called names neither."""
    systems = [system for one in manifests for system in one.systems]
    titles = {s.name: s.name for s in systems} | {s.name: s.title for s in systems if s.title}
    times = Counter(titles.values())
    return Titles({name: title for name, title in titles.items() if times[title] == 1})


class Quantiles(Open):
    """Of round-trip times, or by how much delays differ from what was requested, ms."""

    p50: float
    p99: float


class Figures(Quantiles):
    """Of round-trip times, ms."""

    min: float
    max: float


class Pair(Open):
    """An ordered pair of nodes, and whether the path between them is what was requested."""

    source: str = Field(alias="from")
    destination: str = Field(alias="to")
    requested_rtt_ms: float | None = None
    lost: int | None = None
    reasons: Sequence[str] = ()
    only_late: bool | None = None
    """Nothing is wrong but that the machine was late. Null: not known."""
    verdict: Verdict = "pass"


class CalibratedPair(Pair):
    """A pair in a lab, as calibration measured it; null: nothing came back, or was requested."""

    system: str = ""
    rtt_ms: Figures | None
    error_ms: Quantiles | None = None


EQUAL_WITHIN = 0.1
"""Pairs with median RTTs within this fraction of their median count as equally far apart."""


class MeasuredRtt(NamedTuple):
    """RTT over a set of ordered pairs of nodes.

    `median_ms` is the median over the pairs of their medians, `low_pair_ms` and `high_pair_ms`
    the extreme pairs' medians, `min_ms` and `max_ms` the extreme single round trips, `pairs` the
    number of ordered pairs.
    """

    median_ms: float
    low_pair_ms: float
    high_pair_ms: float
    min_ms: float
    max_ms: float
    pairs: int

    @property
    def is_uniform(self) -> bool:
        """Whether one figure speaks for every pair, so that multiples of it mean something."""
        slack = EQUAL_WITHIN * self.median_ms
        return max(self.high_pair_ms - self.median_ms, self.median_ms - self.low_pair_ms) <= slack


class Calibration(Document):
    """Every ordered pair of every lab of a run, and the verdict over all of them."""

    FILE: ClassVar[str] = "calibration.json"

    topology: str | None = None
    backend: str = ""
    tolerance: Mapping[str, float | None] = {}
    quantiles: Sequence[float] = ()
    pairs: Sequence[CalibratedPair]
    overflows: int = 0
    verdict: Verdict

    @property
    def passed(self) -> bool:
        """Whether every pair of every lab was as requested."""
        return self.verdict == "pass"

    def trusts(self, system: str) -> bool:
        """Whether the network was right in the lab of `system`.

        A failure that no pair accounts for is one of every lab.
        """
        labs = {pair.system for pair in self.pairs if pair.verdict != "pass"}
        return self.passed or (bool(labs) and not labs & {system, ""})

    def between_sites(self, site_of: Callable[[str], str]) -> MeasuredRtt | None:
        """RTT over the pairs that cross from one site to another; None if none does."""
        return _rtt_over([p for p in self.pairs if site_of(p.source) != site_of(p.destination)])

    def within_sites(self, site_of: Callable[[str], str]) -> MeasuredRtt | None:
        """RTT over the pairs inside a site; None if none was measured."""
        return _rtt_over([p for p in self.pairs if site_of(p.source) == site_of(p.destination)])


def _rtt_over(pairs: Sequence[CalibratedPair]) -> MeasuredRtt | None:
    rtts = [pair.rtt_ms for pair in pairs if pair.rtt_ms is not None]
    if not rtts:
        return None
    medians_ms = [rtt.p50 for rtt in rtts]
    return MeasuredRtt(
        median_ms=median(medians_ms),
        low_pair_ms=min(medians_ms),
        high_pair_ms=max(medians_ms),
        min_ms=min(rtt.min for rtt in rtts),
        max_ms=max(rtt.max for rtt in rtts),
        pairs=len({(pair.source, pair.destination) for pair in pairs if pair.rtt_ms is not None}),
    )


class RttStepPair(Pair):
    """A pair at an RTT step, ms; `measured_rtt_ms` is a median. Null: nothing came back."""

    measured_rtt_ms: float | None = None
    p99_ms: float | None = None
    min_ms: float | None = None
    max_ms: float | None = None


class RttStep(Growing):
    """One stay at one RTT; `rtt_step` is its number, unique within the system.

    `idle_ns` is when only the cluster's own background crossed the links; `measured_rtt_ms` the
    median over the pairs that lead from the target node's site to other sites.
    """

    system: str
    rtt_step: int
    requested_rtt_ms: float
    requested_jitter_ms: float = 0.0
    changed_ns: int | None = None
    idle_ns: Span | None = None
    calibrated_ns: Span | None = None
    begun_ns: int | None = None
    ended_ns: int | None = None
    pairs: Sequence[RttStepPair] = ()
    measured_rtt_ms: float | None = None
    verdict: Verdict = "pass"


class RttSteps(Document):
    """Every RTT step of every system, in the order taken; replaced after each of them."""

    FILE: ClassVar[str] = "rtt_steps.json"

    rtt_steps: Sequence[RttStep] = ()


class Settled(Document):
    """How long it was waited for nodes to become idle, and how many cores they used."""

    seconds: float
    cores_before: float
    cores: float
    is_idle: bool


class Prefill(Document):
    """What was written into one system. `objects`: in each bucket; `seconds`: to write them.

    `refused`: writes that were sent again. `read_back`: objects that were read afterwards and were
    right; `counted`: in the listings of all buckets (null: there is no listing).
    """

    system: str
    buckets: Sequence[str] = ()
    objects: int
    object_bytes: int
    writers: int | None = None
    written: int | None = None
    seconds: float | None = None
    per_s: float | None = None
    refused: int | None = None
    read_back: int | None = None
    counted: int | None = None
    settled: Settled | None = None


class Prefills(Document):
    """What was written before anything was measured."""

    FILE: ClassVar[str] = "prefill.json"

    systems: Sequence[Prefill] = ()


class Found(Document):
    """Of `kept` objects that were to stay `lost` could not be read as they were written; of
    `removed` ones `still_there` could. `example`: what one of the lost ones answered.
    """

    kept: int
    lost: int
    removed: int
    still_there: int
    example: str | None = None


class Reclaim(Growing):
    """What was removed from one system.

    `settled_ns`: the last sample before the removal. `refused`: removals that were sent again.
    """

    system: str
    objects: int
    object_bytes: int
    removed: int
    which: str
    workers: int
    filled_ns: Span | None = None
    settled_ns: int | None = None
    removed_ns: Span | None = None
    watched_ns: Span | None = None
    refused: int = 0
    found: Found | None = None


class Reclaims(Document):
    """What was done to see what becomes of the space of removed objects."""

    FILE: ClassVar[str] = "reclaim.json"

    systems: Sequence[Reclaim] = ()


class Network(Document):
    """What every WAN link had: RTT and jitter, ms; lost packets, a share of 1."""

    rtt_ms: float
    jitter_ms: float = 0.0
    loss: float = 0.0


class Trial(Document):
    """Whether a promise held in one trial; `broken`: what of it did not."""

    span_ns: Span
    held: bool
    broken: str | None = None


class TestedNetwork(Growing):
    """A network on which a promise was put to the test: the `rtt_step` of its samples is `number`.

    `after`: the network that it was reached from; null: the near one. Of the objects that were
    `written` and acknowledged, no node had the `lost` ones afterwards, and some nodes did not have
    the `stale` ones that others had; `unread`: answers that are missing.
    """

    number: int
    network: Network
    after: Network | None = None
    measured_rtt_ms: float | None = None
    trials: Sequence[Trial] = ()
    verdict: Literal["holds", "fails", "undecided"] | None = None
    written: int = 0
    lost: int = 0
    stale: int = 0
    unread: int = 0
    restarted: bool = False


class EnvelopeLimit(Document):
    """How far a promise holds along an axis, the rest of the network `at` something.

    It held at `inside` (null: nowhere) and not at `outside` (null: everywhere). `changed`: values
    with two verdicts. `back`: the greatest value at which it held coming from beyond (null: none);
    known where `is_approached`.
    """

    axis: Literal["rtt", "jitter", "loss"]
    at: Network
    inside: float | None
    outside: float | None
    changed: Sequence[float] = ()
    back: float | None = None
    is_approached: bool = False
    has_hysteresis: bool = False


class Regions(Document):
    """Two sites of a topology, and their RTT."""

    sites: tuple[str, str]
    rtt_ms: float


class Takeover(Document):
    """What came of the death of the node that led: `killed`, at `killed_ns`.

    Seconds from then until another one, `led`, reported that it leads, and until a write that was
    sent afterwards was acknowledged; null: not within `waited_s`.
    """

    killed: str
    killed_ns: int
    waited_s: float
    led: str | None = None
    led_s: float | None = None
    answered_s: float | None = None


class Price(Growing):
    """What a cluster's timeouts cost while its sites are near each other.

    `kills`: of the node that led, one after another. `idle_bytes`, `idle_packets`: what crossed
    WAN links in `idle_s` seconds without a request. `lost`: of the objects that were `written`
    meanwhile, those that no node had afterwards; `unread`: answers that are missing.
    """

    kills: Sequence[Takeover] = ()
    idle_s: float = 0.0
    idle_bytes: int = 0
    idle_packets: int = 0
    written: int = 0
    lost: int = 0
    unread: int = 0


class Envelope(Growing):
    """How far one system's cluster kept its promise, and every network that it was tested on.

    `leads`: whether its leader is known, so that a change of it is seen. `is_complete`: all limits
    were found, tested again and approached. `price`: where the study has `kills`.
    """

    system: str
    leads: bool = False
    tests: Sequence[TestedNetwork] = ()
    limits: Sequence[EnvelopeLimit] = ()
    regions: Sequence[Regions] = ()
    price: Price | None = None
    is_complete: bool = False


class Envelopes(Document):
    """What was found of how far apart a cluster may be; replaced after each tested network."""

    FILE: ClassVar[str] = "envelope.json"

    systems: Sequence[Envelope] = ()


class PlacedClient(Document):
    """A region with clients, the node that they send to, and the round-trip time to it, ms."""

    region: str
    share: float
    target: str
    way_ms: float


class PredictedRequest(Document):
    """What a request takes from its arrival at the target node to the response, ms."""

    target: str
    endpoint: str
    ms: float


class RegionLost(Document):
    """The region of which the loss costs most; null: without it nothing is answered."""

    region: str
    leader: str | None = None
    mean_ms: float | None = None


class Placement(Document):
    """A cluster's nodes in regions, in the ranking's place `rank`; `name`: of its topology.

    `mean_ms` is over clients and operations, `endpoints` of each operation over clients.
    """

    rank: int
    name: str
    regions: Sequence[str]
    leader: str | None
    mean_ms: float
    endpoints: Mapping[str, float]
    worst_client: str
    worst_client_ms: float
    lost: RegionLost
    clients: Sequence[PlacedClient]
    requests: Sequence[PredictedRequest]


class Placements(Document):
    """Where a cluster's nodes and its leader may be, and what is predicted of it.

    Some of the placements that were compared: the best, and those that were measured. `sources`:
    of each endpoint, what the prediction is from.
    """

    FILE: ClassVar[str] = "placements.json"

    system: str
    matrix: str
    compared: int
    rank_by: Literal["mean", "worst", "lost"]
    mix: Mapping[str, float]
    sources: Mapping[str, str]
    placements: Sequence[Placement]


class Point(Document):
    """One point of a matrix: its place in the order, its bundle, and how its last attempt ended."""

    point: int
    name: str
    system: str
    values: Json
    directory: str = Field(pattern=r"^points/[^./\x00-\x1f\x7f-\x9f][^/\x00-\x1f\x7f-\x9f]*$")
    status: Literal["planned"] | Status = "planned"
    reason: str | None = None
    began: str | None = None
    ended: str | None = None
    attempts: int = 0

    @field_validator("directory")
    @classmethod
    def _is_no_directory_of_files(cls, directory: str) -> str:
        if PurePath(directory).name in beneath.INSIDE:
            raise ValueError("is what a bundle calls a directory of its own files")
        return directory


class Points(Document):
    """All points of a matrix, in the order in which they are run."""

    FILE: ClassVar[str] = "points.json"

    parameters: Sequence[Parameter]
    points: Sequence[Point]
