"""A study with everything looked at that could be wrong about it, before anything slow starts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from wanlat.bundle.write import default_directory
from wanlat.emulator.binaries import binary
from wanlat.emulator.lab import BackendName
from wanlat.experiments.config.endpoints import endpoints_of
from wanlat.experiments.config.rtt_steps import check_rtt_steps
from wanlat.experiments.config.study import Study, place
from wanlat.experiments.request_plan import RequestPlan, plan_requests
from wanlat.experiments.session import CaptureWanted, Setup
from wanlat.systems import registry
from wanlat.systems.base import Binary
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan, resolve
from wanlat.topologies.variants import override, with_nodes


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
    calibrated = topology
    if (spec := study.round_trips) is not None:
        # The lab is built and calibrated at the greatest RTT of the steps: nothing is measured at
        # the topology's own, and to calibrate a jitter takes longer than all the rest.
        calibrated = override(topology, max(spec.rtts), spec.jitter_at(max(spec.rtts)))
    plan = resolve(calibrated)
    systems = [registry.get(name) for name in study.systems]
    for name in study.options.keys() - set(study.systems):
        registry.get(name)  # an unknown name is the likelier mistake: say which exist
    if spec is not None:
        check_rtt_steps(study.name, spec, plan)
    sites = {node.name: node.site for node in plan.nodes}
    client = place(sites, study.client, "client")
    target = place(sites, study.target, "target") if study.target else client
    if seed is None:
        seed = secrets.randbits(32) if study.seed is None else study.seed
    known = {} if binaries is None else binaries
    subjects = []
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
            own=endpoints_of(system),
        )
        key = f"{system.name} {options!r}"
        if key not in known:
            known[key] = system.binary_for(options)
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
