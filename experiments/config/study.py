"""A study: the YAML file with what to measure, and what the command line changes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, Discriminator, Field, Tag, create_model, model_validator

from wanlat.experiments.config.endpoints import Endpoint, name_of
from wanlat.experiments.config.files import StudyError, find
from wanlat.experiments.config.matrix import (
    MATRIX,
    SYSTEMS,
    Matrix,
    NoSuchPlace,
    Values,
    format_findings,
    matrix_mistakes,
    parts,
    with_values,
)
from wanlat.experiments.config.workloads import (
    BudgetSpec,
    PrefillSpec,
    ResourcesSpec,
)
from wanlat.experiments.kinds import KINDS
from wanlat.experiments.kinds.base import SINGLE_REQUESTS, StudyKind
from wanlat.probes.header import MAX_MESSAGE_BYTES
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_lines import checked, load_yaml_model, path_in
from wanlat.topologies.yaml_model import YamlModel, refused, unique, within
from wanlat.topologies.yaml_tree import Document


def not_a_path(name: str) -> str:
    """Return the name of a system. Raises ValueError for a path: no file brings a system along."""
    if "/" in name:
        raise ValueError(
            f"{show(name)} is a path, and a file names systems by name; one of your own is given "
            f"on the command line, --systems {name}"
        )
    return name


SystemName = Annotated[str, AfterValidator(not_a_path)]


class _Subject(YamlModel):
    """What a study of any kind measures, and where."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", description="Names the bundle")
    description: str = Field(default="", description="One line for people")
    topology: str = Field(description="A shipped topology, or a path relative to this file")
    systems: Annotated[list[SystemName], unique("each is measured once")] = Field(
        default=["quorum"], min_length=1, description="Stores under test, one after another"
    )
    nodes: int | None = Field(
        default=None,
        ge=1,
        description="Nodes in all, spread evenly over the sites. Default: the topology's own",
    )
    options: dict[str, dict[str, Any]] = Field(
        default={}, description="Options of each system, by its name"
    )
    endpoints: Annotated[list[Endpoint], unique("each is measured once", name_of)] = Field(
        min_length=1,
        description="API operations to measure; each system is asked for those that its API has",
    )
    client: str | None = Field(
        default=None,
        description="Where the client stands: a node, or a site (its first node). "
        "Default: the first node of the topology",
    )
    target: str | None = Field(
        default=None,
        description="The node that requests go to. Default: the one the client stands at",
    )


_KEYS: dict[str, Any] = {
    kind.key: (kind | None, Field(default=None, description=kind.purpose))
    for kind in KINDS.values()
}
if TYPE_CHECKING:
    _OfAnyKind = _Subject
else:
    _OfAnyKind = create_model("_OfAnyKind", __base__=_Subject, **_KEYS)


class Study(_OfAnyKind):
    """Single-request latency of endpoints on clusters on an emulated topology."""

    prefill: PrefillSpec | None = Field(
        default=None, description="Objects that are written before anything is measured"
    )
    samples: int = Field(
        default=100,
        ge=1,
        le=1_000_000,
        description="Measured per endpoint and placement (and RTT step, of round trips)",
    )
    warmup: int = Field(
        default=5, ge=0, le=100_000, description="Unmeasured before, per endpoint and placement"
    )
    budget: BudgetSpec | None = Field(
        default=None,
        description="Fewer samples where requests are long or large. Default: `samples`, always",
    )
    key_mode: Literal["fresh", "same"] = Field(
        default="fresh",
        description="Whether each write is to a fresh key, or all overwrite one, which is read",
    )
    object_size: Size = Field(default=Size(1024), description="Size of the objects")
    max_message: Annotated[Size, within(Size(1), Size(2**30))] = Field(  # as oneshot has it
        default=Size(MAX_MESSAGE_BYTES), description="Longest gRPC message, in both directions"
    )
    grpc_window: Literal["unlimited", "2MiB", "64KiB"] = Field(
        default="unlimited",
        description="HTTP/2's window for answers: a whole one, a tonic client's, HTTP/2's default",
    )
    connection: Literal["keep-alive", "new"] = Field(
        default="keep-alive", description="One connection for all requests, or one for each"
    )
    deadline: Duration = Field(
        default=Duration(30 * 10**9), description="How long a request may take"
    )
    ready_timeout: Duration = Field(
        default=Duration(120 * 10**9),
        description="How long a cluster may take to be ready, besides 600 of the largest RTT",
    )
    storage: Literal["memory", "disk"] = Field(
        default="memory", description="Where the stores' data lies"
    )
    max_network_error: Duration = Field(
        default=Duration(2 * 10**6),
        description="Largest accepted error of the network during a sample, and at calibration",
    )
    resources: Annotated[
        Annotated[ResourcesSpec, Tag("(sampled)")] | Annotated[Literal[False], Tag("(not)")],
        Discriminator(lambda raw: "(not)" if raw is False else "(sampled)"),
    ] = Field(
        default=ResourcesSpec(),
        description="How often what nodes use is sampled; `false`: not at all",
    )
    seed: int | None = Field(
        default=None, ge=0, lt=2**63, description="Of every random choice. Default: drawn"
    )
    matrix: Matrix | None = Field(
        default=None,
        description="Parameters that take several values: every combination is a point, measured "
        "on a cluster of its own",
    )
    replicates: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="On how many fresh clusters each point is measured. What is said of a store, "
        "and not of one cluster, needs five or more",
    )

    key_hints: ClassVar[dict[str, str]] = {
        "rtt": "delays are the topology's",
        "rtts": "it belongs into `round_trips`",
        "repeats": "it belongs into `round_trips`",
        "settle": "it belongs into `round_trips`",
        "jitter": "it is the topology's, or belongs into `round_trips`",
        "system": "`systems` takes a list",
    }

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        """Find keys that exclude each other."""
        values = raw if isinstance(raw, dict) else {}
        kinds = [key for key in KINDS if values.get(key) is not None]
        findings = []
        for kind in kinds[:1]:
            text = f"a study is of one kind, and `{kind}` makes it another; make it two studies"
            findings += [Finding((key,), text, see=(kind,)) for key in kinds[1:]]
            if values.get("budget") is not None:
                text = f"a budget is of single requests on one network, so not of `{kind}`"
                findings.append(Finding(("budget",), text))
        for kind in kinds:
            others = KINDS[kind].excludes.items()
            wrong = [(key, text) for key, text in others if values.get(key) is not None]
            findings += [Finding((key,), text, see=(kind,)) for key, text in wrong]
        return findings

    @property
    def kind(self) -> StudyKind:
        """Which kind it is, with its key's settings."""
        specs: Iterator[StudyKind | None] = (getattr(self, key) for key in KINDS)
        return next((spec for spec in specs if spec is not None), SINGLE_REQUESTS)

    @property
    def has_points(self) -> bool:
        """Whether it is measured point by point: a matrix, or one point on several clusters, or
        one that is resumed in its midst.
        """
        return self.matrix is not None or self.replicates > 1 or self.kind.is_resumed

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """What is measured can be. Each point of a matrix is looked at by itself."""
        if self.matrix is None and (findings := list(self._invalid())):
            raise refused(findings)
        return self

    def _invalid(self) -> Iterator[Finding]:
        if self.budget is not None and self.budget.time is not None and not self.warmup:
            text = "how many samples fit into a time is judged from the warm-up; there is none"
            yield Finding(("warmup",), text, see=("budget",))
        yield from self.kind.check_study(self.prefill, self.object_size)


def load(name_or_path: str, *, also: Callable[[Study], Iterable[Finding]] | None = None) -> Study:
    """Return the study of that name, or in the file at that path.

    A topology that the study names by a path is taken from where the study is, and so are the
    files of system `service`. ``also`` looks at a study in which nothing else is wrong. Raises
    StudyError, with every mistake.
    """
    path = find(name_or_path)

    def located(study: Study) -> Study:
        raw = study.to_dict()
        values = _located(raw, path.parent)
        return study if values == raw else Study.model_validate(values)

    def further(document: Document, study: Study) -> Iterator[Finding]:
        wrong: list[Finding] = []
        if study.matrix is not None:
            wrong += matrix_mistakes(document.raw, study.matrix, study.systems, Study)
        if not wrong and also is not None:
            wrong += also(located(study))
        for finding in wrong:
            yield replace(finding, path=path_in(document.raw, finding.path))

    return located(load_yaml_model(path, Study, also=further, error=StudyError))


def _located(values: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """Return keys of a study with the files that they name as seen from the study's directory.

    That are topologies wherever a matrix varies them, and the files of system `service`.
    """

    def seen(given: Any) -> Any:
        if isinstance(given, list):
            return [*map(seen, given)]
        is_there = isinstance(given, str) and (directory / given).exists()
        return str(directory / given) if is_there else given

    def at(key: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {inner: at(inner, inner_value) for inner, inner_value in value.items()}
        if isinstance(value, list) and key in ("matrix", "include", "exclude"):
            return [at(key, entry) for entry in value]
        if key == "topology":
            every = value if isinstance(value, list) else [value]
            files = [seen(e) if str(e).endswith((".yaml", ".yml")) else e for e in every]
            return files if isinstance(value, list) else files[0]
        return value

    located = {key: at(key, value) for key, value in values.items()}
    if own := located.get("options", {}).get("service"):
        own |= {key: seen(own[key]) for key in ("protos", "includes") if key in own}
        match own.get("command"):
            # A bare name is looked for on PATH, by the system.
            case [str(program), *more] if "/" in program:
                program = seen(program)
                # Beside a study that is named without its directory, it would be a bare name.
                own["command"] = [program if "/" in program else f"./{program}", *more]
    return located


def node_of(wanted: str, plan: Plan, roles: Mapping[str, Sequence[str]] = {}) -> str:
    """Return the node that a name means: a role, a node or a site; of several nodes the first.

    Raises UserError.
    """
    if wanted in roles:
        return roles[wanted][0]
    for key in ("name", "site"):
        for node in plan.nodes:
            if getattr(node, key) == wanted:
                return node.name
    names = [*roles, *(node.name for node in plan.nodes), *(site.name for site in plan.sites)]
    role = "no role of the drill, and " if roles else ""
    raise UserError(
        f"{show(wanted)} is {role}no node or site of topology {plan.name}"
        f"{did_you_mean(wanted, names)}; there are {listing(dict.fromkeys(names), at_most=20)}"
    )


M = TypeVar("M", bound=YamlModel)


def set_values(raw: Values, settings: Values) -> dict[str, Any]:
    """Return the keys of a file with parameters set, without its matrix. Raises UserError."""
    try:
        return with_values(raw, settings)
    except NoSuchPlace as error:
        raise UserError(f"--set: {error}.") from error


def validated(
    what: str, raw: dict[str, Any], model: type[M], also: Callable[[M], Iterable[Finding]]
) -> M:
    """Return what is made of changed keys; ``also`` looks for mistakes besides the model's.

    Raises UserError, which lists every mistake.
    """
    made, wrong = checked(Document(raw), model)
    if made is not None and not wrong:
        wrong = list(also(made))
    if made is None or wrong:
        text = format_findings(wrong).rstrip(".")
        raise UserError(f"{what} with what the command line changes: {text}.")
    return made


def changed(
    study: Study, settings: Values, axes: Mapping[str, Sequence[Any]] | None = None
) -> Study:
    """Return the study with parameters set to values, and others varied over several.

    Parameters are dotted for inner keys. One that is set is varied no longer; one that is varied is
    so in every grid of the study's matrix. Raises UserError, which lists every mistake.
    """
    settings, axes = dict(settings), dict(axes or {})
    if not settings and not axes:
        return study
    if double := settings.keys() & axes.keys():
        raise UserError(f"`{min(double)}` is set and varied; do one of them.")
    if MATRIX in settings:
        raise UserError("`matrix` is not set as a whole: give --matrix PARAMETER=V1,V2.")
    each_system = list(axes.pop(SYSTEMS, ()))
    if each_system:
        settings[SYSTEMS] = each_system
    raw = study.to_dict()
    if isinstance(named := settings.get(SYSTEMS), list):
        # What is not measured is not looked at.
        options = {name: own for name, own in raw.get("options", {}).items() if name in named}
        raw["options"] = options
    raw = set_values(raw, settings)
    _check_options(settings, raw[SYSTEMS])
    grids = _grids(study, settings, axes, raw[SYSTEMS])
    if each_system and not any(grids):
        grids = [{SYSTEMS: each_system}]
    if any(grids):
        # A grid that is left without an axis is one point: any parameter with its own value.
        raw[MATRIX] = [grid or {"samples": [raw["samples"]]} for grid in grids]

    def of_points(made: Study) -> list[Finding]:
        return matrix_mistakes(raw, made.matrix, made.systems, Study) if made.matrix else []

    return validated(f"Study {study.name}", raw, Study, of_points)


def _check_options(settings: Values, systems: Any) -> None:
    """Raise UserError for an option that is set of a system which is not measured."""
    for name in settings:
        kind, _, inner = name.partition(".")
        system = inner.partition(".")[0]
        if kind == "options" and system and isinstance(systems, list) and system not in systems:
            raise UserError(
                f"`{name}` is set, and {system} is not measured{did_you_mean(system, systems)}, "
                f"only {listing(systems)}. Name it with --systems, or leave the option out."
            )


def _grids(
    study: Study, settings: Values, axes: Mapping[str, Sequence[Any]], systems: Any
) -> list[dict[str, Any]]:
    """Return the grids of the systems that are chosen, without what is set and with what varies.

    Without options of those that are not.
    """
    grids: list[dict[str, Any]] = []
    dropped = [name for name in study.systems if name not in systems]
    for _, own, excluded in list(parts(study.matrix or ())) or [((), {}, [])]:
        left = {
            name: values
            for name, values in own.items()
            if not _is_set(name, settings)
            and not any(name.startswith(f"options.{system}.") for system in dropped)
        }
        if SYSTEMS in own and isinstance(systems, list):
            left[SYSTEMS] = [name for name in own[SYSTEMS] if name in systems]
            if not left[SYSTEMS]:
                continue
        for name in settings:
            for around in left:
                if name.startswith(f"{around}."):
                    raise UserError(
                        f"`{name}` cannot be set: the study varies `{around}`, which holds it. "
                        f"Set `{around}` as a whole."
                    )
        varied = {**left, **axes}
        kept = [exclusion for exclusion in excluded if exclusion.keys() <= {*varied, SYSTEMS}]
        grids.append({**varied, "exclude": kept} if kept else varied)
    named = [name for _, own, _ in parts(study.matrix or ()) for name in own.get(SYSTEMS, systems)]
    others = [name for name in systems if name not in named] if study.matrix else []
    if others:  # which no grid is for: at the study's own values
        grids.append({SYSTEMS: others, **axes})
    return grids


def _is_set(name: str, settings: Values) -> bool:
    """Whether a parameter is set. (A grid's own systems stay its own: of those that are chosen.)"""
    return name != SYSTEMS and any(name == one or name.startswith(f"{one}.") for one in settings)
