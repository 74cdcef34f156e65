"""What `run` and `drill run` have in common: their options, and what is done with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from wanlat import options as o
from wanlat.commands.settings import trust, use_bobd
from wanlat.output import inform
from wanlat.running import (
    heed_interruptions,
    measure_points,
    with_own_directory,
)
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Size

if TYPE_CHECKING:
    from wanlat.experiments.matrix import MatrixOutcome
    from wanlat.experiments.matrix_points import Batch
    from wanlat.experiments.resume import Unfinished
    from wanlat.experiments.session import CaptureWanted, Outcome


@dataclass(frozen=True, kw_only=True)
class Common:
    """The options of every command that measures what a YAML file describes."""

    systems: o.Systems = None
    topology: o.TopologyChoice = None
    replicates: o.Replicates = None
    seed: o.Seed = None
    storage: o.StorageChoice = None
    max_network_error: o.MaxNetworkError = None
    option: o.SystemOptions = None
    set_: o.Set = None
    bobd: o.Bobd = None
    backend: o.Backend = None
    out: o.Out = None
    resume: o.Resume = None
    trusted: o.Trust = False
    capture: o.CaptureChoice = None
    capture_limit: Annotated[
        Size | None,
        o.option(
            "SIZE",
            "Largest size of the packet record (default: 256MiB; of round trips 1GiB)",
            parse=Size.parse,
        ),
    ] = None
    capture_snap: o.CaptureSnap = o.DEFAULT_SNAP
    jobs: o.Jobs = None
    engine: o.Engine = None
    scheduler: o.Scheduler = None
    shard: o.Shard = None
    dry_run: o.DryRun = False
    as_json: o.Json = False
    verbose: o.Verbose = False
    quiet: o.Quiet = False

    def __post_init__(self) -> None:
        """Raise UserError for options that exclude each other."""
        if self.scheduler is not None and self.engine is None:
            raise UserError(f"--scheduler {self.scheduler}: that is Dask's. Add --engine dask.")
        if self.engine is not None and self.jobs is not None:
            raise UserError(
                "--jobs: Dask has as many points measured at once as there are workers."
            )

    @property
    def workers(self) -> str | None:
        """Which of Dask's workers are to measure; None: this machine."""
        return None if self.engine is None else self.scheduler or "local:1"

    def unfinished(self, context: typer.Context, command: str) -> Unfinished | None:
        """Return the bundle that ``command`` resumes; None: a new one is made. Raises UserError."""
        if self.resume is None:
            return None
        o.refuse_others(
            context,
            f"--resume {self.resume} goes on as that run was begun",
            *("resume", "trusted", "systems", "jobs", "engine", "scheduler"),
        )
        from wanlat.experiments.resume import read_unfinished

        trust(self.systems)
        unfinished = read_unfinished(self.resume, command, is_trusted=self.trusted)
        use_bobd(self.bobd, [system.name for system in unfinished.manifest.systems])
        return unfinished

    def how(self, batch: Batch, capture: CaptureWanted | None) -> dict[str, Any]:
        """Return how a new bundle is measured: arguments of `prepare_points`. Raises UserError."""
        from wanlat.experiments.matrix_points import Shard

        how = {"directory": self.out, "backend": self.backend, "capture": capture}
        if self.shard is None:
            return how
        if batch.is_one:
            raise UserError(f"--shard: this is one {batch.noun}. {batch.several}")
        return how | {"shard": Shard.parse(self.shard)}

    def recorded(self, limit: Size = o.DEFAULT_LIMIT) -> CaptureWanted:
        """Return how much is recorded of packets; ``limit``: where the user names none."""
        from wanlat.experiments.session import CaptureWanted

        return CaptureWanted((self.capture_limit or limit).bytes, self.capture_snap.bytes)


def with_common(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command for Typer that has the common options, too, and gets them as ``common``."""

    def called(**given: Any) -> None:
        common = Common(**{field.name: given.pop(field.name) for field in fields(Common)})
        command(**given, common=common)

    types = get_type_hints(command, include_extras=True)
    own = [p.replace(annotation=types[n]) for n, p in signature(command).parameters.items()]
    shared = get_type_hints(Common, include_extras=True)
    parameters = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in own if p.name != "common"]
    parameters += [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=shared[field.name],
        )
        for field in fields(Common)
    ]
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # inspect reads it
    return called


def measure(
    batch: Batch,
    how: Mapping[str, Any],
    common: Common,
    unfinished: Unfinished | None,
    run_one: Callable[[Any], Outcome],
) -> Outcome | MatrixOutcome:
    """Measure a batch: one run, or the points that are left. Raises UserError or MachineError.

    ``how``: arguments of `prepare_points`; ``run_one`` runs what is prepared, with progress.
    """
    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments.matrix import MatrixOutcome
    from wanlat.experiments.matrix_points import prepare_points

    if unfinished is not None and unfinished.is_complete:
        inform(f"{unfinished.directory} is complete: nothing is left to measure.")
        return MatrixOutcome(unfinished.directory, "complete")
    workers = common.workers
    if not is_one(batch, unfinished):
        prepared = prepare_points(batch, **how)
        return measure_points(
            prepared, unfinished, common.jobs, workers, out=common.out, noun=batch.noun
        )
    if workers is not None:
        raise UserError(f"--engine: this is one {batch.noun}. {batch.several}")
    ready = batch.prepare(**how)
    heed_interruptions()
    demand_lab(ready.plan, ready.backend)
    ready = with_own_directory(ready, common.out)
    return run_one(ready)


def is_one(batch: Batch, unfinished: Unfinished | None) -> bool:
    """Whether it is one run, in a bundle without points."""
    return batch.is_one and unfinished is None
