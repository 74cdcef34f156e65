"""A study with everything looked at that could be wrong about it, before anything slow starts:
its systems, and what it requests of each, as a plan of requests.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wanlat.bundle.write import default_directory
from wanlat.emulator.binaries import binary
from wanlat.emulator.lab import BackendName
from wanlat.experiments.config.endpoints import (
    endpoints_of,
    matching_endpoints,
    measured,
    name_of,
    objects_of,
)
from wanlat.experiments.config.study import Study, node_of
from wanlat.experiments.config.workloads import BUCKET, CARRY_NO_OBJECT
from wanlat.experiments.session import CaptureWanted, Setup
from wanlat.probes.body import body
from wanlat.probes.fewer import Turn, fewer
from wanlat.probes.header import Header, Window
from wanlat.probes.method_plan import Measured
from wanlat.probes.objects import HOW_OBJECTS, ObjectApi
from wanlat.probes.plan import Plan as Requests
from wanlat.probes.plan import Replicas, StepsPlan, Wanted
from wanlat.probes.prefilled import Prefilled
from wanlat.probes.protocols import PLANNERS, header_to
from wanlat.systems import registry
from wanlat.systems.base import Api, Binary, Cluster
from wanlat.systems.engine.protocols.requests import Requested
from wanlat.systems.errors import SystemMissing
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan, resolve
from wanlat.topologies.variants import with_nodes
from wanlat.topologies.wording import listing

_WINDOWS: Mapping[str, Window] = {"unlimited": "large", "2MiB": "tonic", "64KiB": "default"}
"""What the probe calls them."""


@dataclass(frozen=True)
class RequestPlan:
    """The part of a study that one system gets."""

    study: Study
    api: Api
    objects: ObjectApi | None
    """How objects are requested; None: unknown."""
    endpoints: tuple[str | Requested, ...]
    target: str
    replicas: Replicas
    seed: int

    @property
    def names(self) -> list[str]:
        """The endpoints, as samples call them."""
        return [name_of(endpoint) for endpoint in self.endpoints]

    def plan(self) -> Requests:
        """Return all requests of a study of one network. It is the same every time.

        Of what the study's budget allows no more than so many samples by their bytes alone, there
        are no more. (How many it allows by their time is known after the warm-up.)
        """
        return fewer(self._plan(1).as_one(), self._samples())

    def plan_of_steps(self) -> StepsPlan:
        """Return all requests of a study of round trips. It is the same every time."""
        return self._plan(self.study.kind.total_steps)

    def _plan(self, steps: int) -> StepsPlan:
        study = self.study
        fill, prefilled = study.prefill, None
        if fill is not None and self.objects is not None:
            # Reads are of it where it has the size to be read.
            is_read = fill.object_bytes(study.object_size) == study.object_size.bytes
            text_keys = self.objects.text_keys
            prefilled = Prefilled(BUCKET, fill.objects, self.seed, text_keys, is_read)
        return PLANNERS[self.api].plan(self._wanted(steps, prefilled))

    def _wanted(self, steps: int = 1, prefilled: Prefilled | None = None) -> Wanted:
        """What is to be measured, as the protocol's planner takes it."""
        study, endpoints = self.study, list[str | Measured]()
        for endpoint in self.endpoints:
            if PLANNERS[self.api].endpoints:
                endpoints.append(name_of(endpoint))
            elif self.objects is not None:
                endpoints.append(self.objects.known(measured(endpoint)))
            else:
                endpoints.append(measured(endpoint))
        return Wanted(
            endpoints,
            samples=study.samples,
            warmup=study.warmup,
            object_bytes=study.object_size.bytes,
            seed=self.seed,
            target=self.target,
            replicas=self.replicas,
            bucket=BUCKET,
            steps=steps,
            one_key=study.key_mode == "same",
            prefilled=prefilled,
        )

    def measured(self) -> int:
        """Return how many samples are measured: of each endpoint and placement, at each step."""
        return sum(self._samples().values()) * self.study.kind.total_steps

    def _samples(self) -> dict[Turn, int]:
        turns, study = self.turns(), self.study
        if study.budget is None:
            return dict.fromkeys(turns, study.samples)
        planned = study.budget.planned("", turns, study.samples, study.object_size.bytes, {})
        return {turn: budgeted.samples for turn, budgeted in zip(turns, planned, strict=True)}

    def turns(self) -> list[Turn]:
        """Return the endpoints with the placements that they are measured on, as in samples."""
        return PLANNERS[self.api].turns(self._wanted())

    def header(self, cluster: Cluster) -> Header:
        """Return where the requests go to."""
        study = self.study
        return header_to(
            cluster.target(self.target),
            connection=study.connection,
            deadline_ms=study.deadline.ns // 1_000_000,
            max_message_bytes=study.max_message.bytes,
            window=_WINDOWS[study.grpc_window],
        )

    def place(self, cluster: Cluster) -> None:
        """Put on a cluster's disks what its nodes serve as files; nothing runs yet."""
        steps = self.plan_of_steps().steps
        every = (
            request for step in steps for request in (*step.warmup, *step.measure) if request.placed
        )
        for request in {request.key: request for request in every}.values():
            assert request.key is not None and request.body_seed is not None
            cluster.put_on_disk(request.key, body(request.body_seed, request.object_bytes or 0))


def plan_requests(
    study: Study,
    system: str,
    api: Api,
    *,
    target: str,
    replicas: Replicas,
    seed: int,
    objects: ObjectApi | None,
    own: Sequence[Requested] = (),
) -> RequestPlan:
    """Return what the study requests of a system. Raises UserError for nothing, or too much.

    ``target`` is the target node; ``objects`` how objects are requested; ``own`` what the
    system's definition has as endpoints, for a study that names none of its methods.
    """
    endpoints = matching_endpoints(api, study.endpoints, own, objects)
    if not endpoints:
        raise UserError(
            f"System {system} has none of the endpoints of study {study.name} "
            f"({listing(map(name_of, study.endpoints))}). It has {PLANNERS[api].known}. "
            "Add some of these to the study, or leave the system out."
        )
    key = "prefill" if study.prefill is not None else study.kind.key
    if objects is None and (study.prefill is not None or study.kind.needs_objects):
        raise UserError(
            f"`{key}` writes and reads objects, and the definition of system {system} does not say "
            f"how: {HOW_OBJECTS} Or leave `{key}` out of the study."
        )
    if study.key_mode == "same" and not PLANNERS[api].endpoints:
        raise UserError(
            f"`key_mode: same` is of S3 and Bob's API; the requests of system {system} get a fresh "
            "key each time. Leave it out of the study, or the system."
        )
    requests = RequestPlan(study, api, objects, endpoints, target, replicas, seed)
    if objects is not None:
        lacks = [operation for operation in study.kind.operations if not objects.has(operation)]
        if lacks:
            raise UserError(
                f"The load's `mix` has requests of the kind `{lacks[0]}`, and system {system} has "
                f"none under `objects`. Leave them out of the mix, or the system."
            )
        if any(name not in CARRY_NO_OBJECT for name in requests.names):
            objects.check_size(system, study.object_size, study.max_message)
        if study.prefill is not None and study.prefill.object_size is not None:
            objects.check_size(system, study.prefill.object_size, study.max_message)
    return requests


@dataclass(frozen=True, kw_only=True)
class Subject(Setup):
    """A system that is to be measured, checked before anything slow starts."""

    requests: RequestPlan


@dataclass(frozen=True)
class Prepared:
    """A study with everything that could be wrong about it looked at."""

    study: Study
    topology: Topology
    plan: Plan
    subjects: tuple[Subject, ...]
    client: str
    target: str
    seed: int
    backend: BackendName | None
    directory: Path
    capture: CaptureWanted | None = None


def prepare(
    study: Study,
    *,
    directory: Path | None = None,
    backend: BackendName | None = None,
    capture: CaptureWanted | None = None,
    seed: int | None = None,
    topologies: Mapping[str, Topology] | None = None,
    binaries: MutableMapping[str, Binary] | None = None,
) -> Prepared:
    """Check everything that the user could have got wrong, and that the machine must have.

    ``seed`` is the run's, in place of the study's; ``topologies`` are used in place of files, and
    ``binaries`` in place of looking for them again (which takes long: their bytes are hashed).
    Raises UserError or MachineError; nothing has been started or written then.
    """
    topology = (topologies or {}).get(study.topology) or load_topology(study.topology)
    if study.nodes is not None:
        topology = with_nodes(topology, study.nodes)
    plan = resolve(study.kind.network(topology))
    systems = [registry.get(name) for name in study.systems]
    for name in study.options.keys() - set(study.systems):
        registry.get(name)  # an unknown name is the likelier mistake: say which exist
    study.kind.check(study.name, plan)
    client = node_of(study.client, plan) if study.client else plan.nodes[0].name
    target = node_of(study.target, plan) if study.target else client
    if seed is None:
        seed = secrets.randbits(32) if study.seed is None else study.seed
    known = {} if binaries is None else binaries
    subjects = []
    missing: list[SystemMissing] = []
    for system in systems:
        options = system.parse_options(study.options.get(system.name))
        system.check_topology(plan, options)
        system.check_machine(plan, study.storage)
        api, replicas = system.api(options), system.replicas(plan, options)
        requests = plan_requests(
            study,
            system.name,
            api,
            target=target,
            replicas=replicas,
            seed=seed,
            objects=objects_of(system, options),
            own=endpoints_of(system),
        )
        key = f"{system.name} {options!r}"
        if key not in known:
            try:
                known[key] = system.binary_for(options)
            except SystemMissing as error:
                missing.append(error)
                continue
        subjects.append(
            Subject(
                name=system.name,
                plan=plan,
                system=system,
                options=options,
                binary=known[key],
                targets=(target,),
                client=client,
                seed=seed,
                backend=backend,
                storage=study.storage,
                requests=requests,
            )
        )
    if missing:
        raise missing[0] if len(missing) == 1 else SystemMissing("\n".join(map(str, missing)))
    binary("oneshot")
    if capture is not None:
        capture.check(plan, backend)
    return Prepared(
        study=study,
        topology=topology,
        plan=plan,
        subjects=tuple(subjects),
        client=client,
        target=target,
        seed=seed,
        backend=backend,
        directory=directory or default_directory(study.name),
        capture=capture,
    )
