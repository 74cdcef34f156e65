"""`system.yaml`: everything that wanlat knows of a store, as data.

Keys that have an expression are described so; all other texts may have ``{placeholders}``. Both are
in `wanlat.systems.engine.text`. What YAML cannot express is a function in ``hooks.py`` beside it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    Field,
    StrictStr,
    ValidationInfo,
    create_model,
    model_validator,
)

from wanlat.systems.engine.arguments import Argument
from wanlat.systems.engine.endpoints import Request, lacks
from wanlat.systems.engine.protocols import DEFAULT, PROTOCOLS, Objects, Protocol
from wanlat.systems.engine.steps import HOOKS, ReadBack, Step, one_of
from wanlat.systems.engine.text import KNOWN, Expression, Known, Template, Text
from wanlat.topologies.findings import Finding, YamlError
from wanlat.topologies.units import Duration, Fraction, Size
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_lines import load_yaml_model
from wanlat.topologies.yaml_model import YamlModel, refused, unique

FILE = "system.yaml"
SHIPPED = Path(__file__).parents[1]
"""Where the systems are that come with wanlat."""


class DefinitionError(YamlError):
    """A definition that cannot be used. The message lists every mistake, with file and line."""


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{show(text)} is no regular expression: {error}") from error
    return text


Pattern = Annotated[StrictStr, AfterValidator(_pattern)]
Port = Annotated[int, Field(ge=1, le=65535)]
NAME = r"^[a-z][a-z0-9-]{0,39}$"
Name = Annotated[StrictStr, Field(pattern=NAME)]

# -- its program -----------------------------------------------------------------------------

KINDS = ("go", "cargo", "debian", "pypi", "maven", "path", "checkout")


class Install(YamlModel):
    """Where the program comes from: one of the kinds, and which version."""

    go: str | None = Field(default=None, description="the path of a Go command's package")
    cargo: str | None = Field(default=None, description="a crate")
    debian: str | None = Field(default=None, description="a Debian package")
    pypi: str | None = Field(default=None, description="a Python package")
    maven: str | None = Field(default=None, description="a jar, as `group:artifact`")
    path: str | None = Field(default=None, description="a program on PATH, or beside this file")
    checkout: str | None = Field(default=None, description="a program of wanlat's own")
    version: StrictStr = Field(
        default="", description="pinned; of all but path and checkout; of debian also `15.*`"
    )
    program: str | None = Field(
        default=None, description="its file name; default: the last word, of maven the jar's"
    )
    also: list[str] = Field(default_factory=list, description="more packages, or paths to look at")
    features: list[str] = Field(default_factory=list, description="of a crate")
    needs: list[Literal["cc", "make"]] = Field(
        default_factory=list, description="what building needs; of go `cc`: cgo"
    )
    tool: str | None = Field(default=None, description="the oldest go or cargo that builds it")
    path_too: bool = Field(
        default=False, description="take one on PATH or in sbin before the installed"
    )
    minutes: int = Field(default=1, description="about how long that takes on two cores")
    disk: Size = Field(default=Size(300_000_000), description="about what it takes meanwhile")

    def invalid(self) -> list[Finding]:
        """It is of one kind, and pinned."""
        findings = one_of(self, KINDS)
        if not findings and not self.version and self.kind not in ("path", "checkout"):
            text = "`version` is missing: what is measured must not change by itself"
            findings = [Finding((), text)]
        return findings

    @property
    def kind(self) -> str:
        """Which of the kinds it is."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @property
    def source(self) -> str:
        """Where that kind finds it."""
        return str(getattr(self, self.kind))

    @property
    def key(self) -> str:
        """The version, and a hash of all that decides what is installed: it names directories."""
        about: list[object] = [self.kind, self.source, self.version, self.file]
        about += [self.also, self.features, self.needs]
        if self.pypi:
            about.append(sys.implementation.cache_tag)  # packages have parts for one Python alone
        digest = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:8]
        # Lists of directories have colons between them.
        return f"{self.version.removesuffix('.*').replace(':', '-')}-{digest}"

    @property
    def takes(self) -> str:
        """How long it takes, in words."""
        return f"about {self.minutes} minute{'s' * (self.minutes != 1)} on two cores"

    @property
    def file(self) -> str:
        """The program's file name."""
        last = re.split(r"[/:]", self.source)[-1]
        return self.program or (f"{last}-{self.version}.jar" if self.maven else last)


class Version(YamlModel):
    """How the program reports its version."""

    run: list[str] = Field(default=["--version"], description="its arguments")
    match: Pattern = Field(default=r"(\d+(?:\.\d+)+\S*)", description="the group is the version")
    oldest: StrictStr | None = Field(default=None, description="what is older is refused")
    is_: StrictStr | None = Field(
        default=None, alias="is", description="what it is, where the program does not report it"
    )
    label: Pattern | None = Field(
        default=None, description="the groups, joined by dashes, are the version in charts"
    )


class Program(YamlModel):
    """A program on this machine: what it is, how to get it, how it reports its version."""

    name: Name
    """what commands, samples and charts call it"""
    title: StrictStr = ""
    """what people call it"""
    origin: StrictStr = Field(default="", description="who makes it and where it comes from")
    get: StrictStr | None = Field(default=None, description="how to get it, if not by install")
    install: Install | None = None
    """where `wanlat system install` gets it"""
    version: Version = Version()
    """how it reports its version"""


# -- options ---------------------------------------------------------------------------------


class Option(YamlModel):
    """An option that studies may set."""

    type: Literal[
        "integer", "number", "text", "boolean", "choice", "duration", "size", "node", "path"
    ] = Field(description="what a value is")
    description: StrictStr = ""
    """what `wanlat system show` prints of it"""
    default: Any = None
    """where a study does not set it"""
    derived: Expression | None = Field(
        default=None, description="the default, where it depends on the topology"
    )
    min: int | None = None
    """the smallest allowed"""
    max: int | None = None
    """the largest allowed"""
    of: list[str] | None = Field(default=None, description="the choices")
    pattern: Pattern | None = None
    """a regular expression that a text must match"""
    expected: StrictStr | None = Field(default=None, description="the pattern, in words")
    many: Literal["list", "mapping"] | None = None
    """it takes several values"""


ROLES = {
    "heartbeat": "how often who leads shows that it lives",
    "election": "how long followers hear nothing before they elect another",
    "link": "how long a connection between nodes may be silent before it counts as broken",
    "request": "how long a node waits for another one's answer to a request",
}


class Follows(YamlModel):
    """That a timeout is set by another one."""

    timeout: StrictStr
    """the other one"""
    share: Fraction | None = Field(
        default=None,
        description="of the other one, as its makers advise; default: as their defaults are",
    )
    at_most: Fraction | None = Field(
        default=None, description="of the other one; above it the store does not start"
    )


class Timeout(YamlModel):
    """A timeout of the store, which `--advise` varies."""

    role: Literal["heartbeat", "election", "link", "request"] = Field(
        description="; ".join(f"`{role}`: {what}" for role, what in ROLES.items())
    )
    option: StrictStr
    """the option, a duration with a default, that sets it"""
    times: Annotated[float, Field(gt=0)] = Field(
        default=1.0, description="so many times the option's value it is"
    )
    least: Duration | None = None
    """the shortest that the store takes"""
    most: Duration | None = None
    """the longest that the store takes"""
    rtts: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="its makers' rule: at least so many round-trip times"
    )
    follows: Follows | None = Field(default=None, description="it moves with another one")
    tried: Annotated[list[Annotated[float, Field(gt=0)]], unique("each is measured once")] = Field(
        default=[0.25, 0.5, 1, 2, 5, 10],
        min_length=1,
        description="which values are measured, as multiples of the default",
    )


class Requirement(YamlModel):
    """What must hold of a topology and options; else nothing is started."""

    that: Expression
    """true where it holds"""
    error: Text
    """the message where it does not"""


class Need(YamlModel):
    """A program that the store itself runs."""

    program: str
    """its name on PATH"""
    error: StrictStr
    """the message where it is absent"""


# -- the cluster --------------------------------------------------------------------------------


class Stop(YamlModel):
    """How a process is ended when the cluster is."""

    signal: Literal["KILL", "TERM", "INT", "QUIT"] = "KILL"
    """that it is sent"""
    timeout: Duration = Duration(0)
    """before SIGKILL"""


class Front(YamlModel):
    """A program that stands before the cluster and passes requests on."""

    program: Program
    """what is started"""
    at: Expression | None = Field(default=None, description="its node; default: the target's")
    port: Port
    """where it listens"""
    files: dict[str, Template] = Field(default_factory=dict)
    """templates, by their names in its directory"""
    command: list[Argument]
    """its arguments"""


class LowerBound(YamlModel):
    """How many replicas must answer a request, of those that a key may have: its round trips."""

    to: list[StrictStr] = Field(description="endpoints, or reads, writes, listings")
    when: Expression | None = Field(default=None, description="else a later entry counts")
    needed: Expression | None = Field(default=None, description="answers; none: no other node's")
    of: Expression = Field(default="nodes | length", description="how many hold what is asked for")
    near: Expression = Field(
        default="near([nodes | map(attribute='name') | list])",
        description="how many of them are in the target's site, for each place of a key's",
    )
    what: StrictStr = Field(default="replica", description="what a message calls one of them")
    why: StrictStr = ""
    """the sentence of it"""


def _section(key: str) -> tuple[Any, Any]:
    """Return the field with a section of protocols."""
    sharing = [protocol for protocol in PROTOCOLS.values() if protocol.section_key == key]
    names = listing(f"`{protocol.name}`" for protocol in sharing)
    text = f"of protocol{'s' * (len(sharing) > 1)} {names}"
    kind, default = sharing[0].section, sharing[0].default
    return (kind if default else kind | None), Field(default=default, description=text)


_SECTIONS = dict.fromkeys(protocol.section_key for protocol in PROTOCOLS.values())
if TYPE_CHECKING:
    _WithSections = Program
else:
    _WithSections = create_model(
        "_WithSections", __base__=Program, **{key: _section(key) for key in _SECTIONS}
    )


class Definition(_WithSections):
    """A system: its program, options, configuration, start, readiness, and requests."""

    version_: Literal[1] = Field(alias="schema", description="of this file's form")
    extends: str | None = Field(default=None, description="a shipped system this one adds to")
    protocol: Text = Field(
        default=DEFAULT,
        description=f"how requests are made: {', '.join(f'`{name}`' for name in PROTOCOLS)}",
    )
    nodes: dict[Literal["min", "max"], int] = Field(default_factory=dict)
    """how many it can have"""
    needs: list[Need] = Field(default_factory=list)
    """other programs that it runs"""
    ports: dict[str, Port] = Field(default_factory=dict)
    """by names for expressions"""
    options: dict[str, Option] = Field(default_factory=dict)
    """what studies may set"""
    timeouts: dict[Name, Timeout] = Field(
        default_factory=dict, description="those of the store; the first is the one to vary"
    )
    values: dict[str, Expression] = Field(
        default_factory=dict, description="names for other expressions"
    )
    require: list[Requirement] = Field(default_factory=list)
    """what must hold before anything starts"""
    recorded: dict[str, Expression] = Field(
        default={}, description="of the options in effect, besides their values; none: left out"
    )
    roles: dict[str, Expression] = Field(
        default_factory=dict, description="nodes that drills can name"
    )
    directories: list[Text] = Field(default_factory=list)
    """made in the node's directory"""
    files: dict[str, Template] = Field(default_factory=dict, description="in the node's directory")
    command: list[Argument] = Field(default_factory=list)
    """the node's process"""
    environment: dict[str, Text] = Field(
        default_factory=dict, description="a value of none: left out"
    )
    after_start: list[Step] = Field(default_factory=list)
    """what makes the processes a cluster"""
    ready: list[Step] = Field(default_factory=list, description="default: S3, or an open port")
    bucket: list[Step] = Field(
        default_factory=list, description="how `bucket` is made, where S3 does not"
    )
    settings: list[ReadBack] = Field(
        default_factory=list, description="what is read back from running servers, and compared"
    )
    leader: Step | None = Field(default=None, description="a step that only the leader passes")
    objects_on_disk: Text | None = Field(
        default=None,
        description="where in the node's directory a file serves an object, with `{key}`",
    )
    front: Front | None = None
    """what stands before the cluster"""
    stop: Stop = Stop()
    """how processes are ended with the cluster"""
    endpoints: dict[Annotated[str, Field(pattern=r"^[A-Za-z]\w{0,39}$")], Request] = Field(
        default_factory=dict, description="what a study of stores asks it, in place of S3's"
    )
    objects: Objects = Field(
        default=Objects(), description="which endpoints do what; default: S3's, or Bob's"
    )
    lower_bounds: list[LowerBound] = Field(
        default_factory=list, description="of round trips; the first entry that fits counts"
    )
    promised: dict[str, Expression] = Field(
        default_factory=dict,
        description="round trips over WAN links that an endpoint (or reads, writes) takes by "
        "construction; with `to_node(NAME)`, `to_majority(NAME)` and `to_nearest(N, NAME)`: 0 in "
        "one site, else 1, and to predict latencies the RTT",
    )
    decides: dict[str, StrictStr] = Field(
        default_factory=dict,
        description="what decides how many round trips a request to an endpoint takes, if they "
        "differ",
    )

    def section(self, protocol: Protocol[Any]) -> YamlModel | None:
        """Return where and how a node answers over a protocol; None where that is not known."""
        section: YamlModel | None = getattr(self, protocol.section_key)
        return section

    def _unfit_objects(self) -> list[Finding]:
        """What works on objects is there, and carries what it must."""
        usual = PROTOCOLS[self.protocol].objects.names.values()
        known, findings = {*self.endpoints, *usual}, []
        for operation, name in self.objects.names.items():
            why = lacks(self.endpoints[name], operation) if name in self.endpoints else None
            if name not in known:
                near = did_you_mean(name, list(known))
                why = f"`endpoints` has no {show(name)}{near}; it has {listing(self.endpoints)}"
            if why:
                findings.append(Finding(("objects", operation), why))
        return findings

    def _unfit_timeouts(self) -> list[Finding]:
        """Each is set by an option, and follows at most one that follows none."""
        findings = []
        for name, timeout in self.timeouts.items():
            option, follows = self.options.get(timeout.option), timeout.follows
            if option is None:
                near = did_you_mean(timeout.option, list(self.options))
                text = f"there is no option {show(timeout.option)}{near}"
                findings.append(Finding(("timeouts", name, "option"), text))
            elif option.type != "duration" or option.default is None:
                text = f"option {show(timeout.option)} is no duration with a default"
                findings.append(Finding(("timeouts", name, "option"), text))
            if follows is None:
                continue
            leads = [other for other, its in self.timeouts.items() if its.follows is None]
            if follows.timeout not in leads:
                near = did_you_mean(follows.timeout, leads)
                text = f"{show(follows.timeout)} is no timeout that follows none{near}"
                findings.append(Finding(("timeouts", name, "follows", "timeout"), text))
            if follows.share and follows.at_most and follows.share > follows.at_most:
                text = f"{follows.share} is more than `at_most`, {follows.at_most}"
                findings.append(Finding(("timeouts", name, "follows", "share"), text))
        return findings

    @model_validator(mode="before")
    @classmethod
    def _prepare(cls, raw: Any, info: ValidationInfo) -> Any:
        """Add what it extends, and find out what its expressions may name."""
        directory = (info.context or {}).get("directory")
        if directory is None or not isinstance(raw, dict):
            return raw
        base = raw.get("extends")
        bases = sorted(file.parent.name for file in SHIPPED.glob(f"*/{FILE}"))
        if base is not None and base not in bases:
            text = f"there is no system {show(base)}{did_you_mean(str(base), bases)}"
            raise refused([Finding(("extends",), text)])
        if base is not None:
            raw = _inherited(raw, _shipped(SHIPPED / base))
        try:
            hooks = _hooks(_with_hooks(directory, base))
        except Exception as error:  # whatever a user's own code raises
            text = f"{HOOKS} cannot be imported: {type(error).__name__}: {error}"
            raise refused([Finding((), text)]) from error
        KNOWN.set(Known(directory, _names(raw, hooks)))
        return raw

    def invalid(self) -> list[Finding]:
        """Its requests are of its protocol, and that has all it needs; timeouts are its own."""
        return [*self._unfit_timeouts(), *self._unfit_requests()]

    def _unfit_requests(self) -> list[Finding]:
        if "{" in self.protocol:
            return []
        if self.protocol not in PROTOCOLS:
            near, all_ = did_you_mean(self.protocol, list(PROTOCOLS)), listing(PROTOCOLS)
            text = f"{show(self.protocol)} is no protocol{near}; there are {all_}"
            return [Finding(("protocol",), text)]
        findings = []
        protocol = PROTOCOLS[self.protocol]
        section = self.section(protocol)
        if section is None:
            text = f"`{protocol.section_key}` is missing, which says whom to ask"
            findings.append(Finding(("protocol",), text))
        elif why := protocol.invalid(section, self.ports):
            findings.append(Finding(("protocol",), why))
        for name, endpoint in self.endpoints.items():
            if endpoint.api != self.protocol:
                text = f"this is a request of {endpoint.api}, and the protocol is {self.protocol}"
                findings.append(Finding(("endpoints", name), text))
            if endpoint.prepare == "objects_on_disk" and self.objects_on_disk is None:
                text = "`objects_on_disk` is missing, which says where"
                findings.append(Finding(("endpoints", name, "prepare"), text))
        return [*findings, *self._unfit_objects()]


_NODE = ("name", "site", "address", "directory", "data", "facts")
_ANYTHING = (
    *("nodes", "peers", "later", "topology", "version", "answer", "expected", "bucket"),
    *("each", "derive", "numbers", "search", "spread", "range", "loop", "program", "plan"),
    *("listen", "here", "python", "key"),
    *("target", "endpoint", "placement", "near", "to_node", "to_nearest"),
    "to_majority",
)


def read(directory: Path) -> tuple[Definition, ModuleType | None]:
    """Return the definition in a directory, and its hooks. Raises DefinitionError."""
    token = KNOWN.set(None)
    try:
        definition = load_yaml_model(directory / FILE, Definition, error=DefinitionError)
    finally:
        KNOWN.reset(token)
    return definition, _hooks(_with_hooks(directory, definition.extends))


def _with_hooks(directory: Path, base: str | None) -> Path:
    is_own = base is None or (directory / HOOKS).exists()
    return directory if is_own else SHIPPED / str(base)


_JOINED = (
    *("ports", "options", "timeouts", "values", "recorded", "roles", "environment"),
    *("endpoints", "objects", "files"),
)


def _shipped(home: Path) -> Any:
    """Return a shipped definition, with paths that are right in another directory too."""
    raw = _placed(yaml.safe_load((home / FILE).read_text("utf-8")), home)
    raw["files"] = {name: str(home / path) for name, path in raw.get("files", {}).items()}
    for protocol in PROTOCOLS.values():
        section = raw.get(protocol.section_key, {})
        for key in protocol.file_keys:
            if isinstance(section.get(key), list):
                section[key] = [str(home / path) for path in section[key]]
    return raw


def _placed(raw: Any, home: Path) -> Any:
    if isinstance(raw, dict):
        return {key: _placed(value, home) for key, value in raw.items()}
    if isinstance(raw, list):
        return [_placed(value, home) for value in raw]
    return raw.replace("{here}", str(home)) if isinstance(raw, str) else raw


def _inherited(raw: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition with what it lacks itself; mappings are joined key by key."""
    joined = {**base, **raw}
    for key, value in base.items():
        if key in _JOINED and isinstance(value, dict) and isinstance(joined[key], dict):
            joined[key] = {**value, **joined[key]}
    return joined


def _names(raw: Any, hooks: ModuleType | None) -> dict[str, Any]:
    def keys_of(key: str) -> list[str]:
        within = raw.get(key) if isinstance(raw, dict) else None
        return [str(name) for name in within] if isinstance(within, dict) else []

    functions = [name for name in vars(hooks) if not name.startswith("_")] if hooks else []
    return {
        **dict.fromkeys((*_ANYTHING, *keys_of("values"))),
        **dict.fromkeys(("options", "given"), keys_of("options")),
        "node": _NODE,
        "ports": keys_of("ports"),
        "hooks": functions,
    }


@cache
def _hooks(directory: Path) -> ModuleType | None:
    file = directory / HOOKS
    if not file.is_file():
        return None
    name = f"wanlat_hooks_{re.sub(r'[^a-z0-9]', '_', directory.name.lower())}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
