"""The generated part of the reference: what commands, models and schemas have of themselves.

``python -m tools.reference`` lists the parts, ``python -m tools.reference study`` prints one in
Markdown. `make docs` puts each where a page of docs/reference has its mark.
(mkdocs-click does not know the command line: Typer brings a Click of its own.)
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from wanlat import cli
from wanlat.bundle import documents, tables
from wanlat.commands.system import option_rows
from wanlat.emulator.capture.table import SCHEMA as PACKETS
from wanlat.emulator.faults.catalogue import KINDS
from wanlat.experiments.config.study import Study
from wanlat.experiments.drill.model import Drill
from wanlat.schemas import Untitled
from wanlat.systems import registry
from wanlat.systems.engine.definition import Definition
from wanlat.topologies.model import Topology
from wanlat.topologies.units import Duration, Fraction, Rate, Size

Json = Mapping[str, Any]
_SCALARS: dict[str, Any] = {scalar.__name__: scalar for scalar in (Duration, Fraction, Rate, Size)}


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown; what would end a cell is escaped."""
    first = list(heads)
    lines = [first, ["---"] * len(first), *([*row] for row in rows)]
    cells = ([" ".join(cell.split()).replace("|", "&#124;") for cell in line] for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in cells) + "\n"


def code(text: object) -> str:
    """Return a text as code; in HTML where it has a `|`, which would end a cell."""
    return f"<code>{text}</code>" if "|" in str(text) else f"`{text}`"


# -- the command line ------------------------------------------------------------------------


def command_line() -> str:
    """Every command with its arguments and options."""
    return "\n".join(
        part for name in cli.COMMANDS for part in _command(cli.load(name), f"wanlat {name}", 2)
    )


def _command(command: Any, called: str, level: int) -> Iterator[str]:
    yield f"{'#' * level} {called}\n"
    yield f"{command.help or ''}\n"
    inner = getattr(command, "commands", {})
    shown = [option for option in command.params if option.name != "help" and not option.hidden]
    if shown:
        arguments = [option for option in shown if option.param_type_name == "argument"]
        words = [argument.metavar or argument.name for argument in arguments]
        yield f"    {' '.join([called, *words])} [OPTIONS]\n"
        heads = ("argument or option", "value", "meaning", "default")
        yield table(heads, map(_parameter, shown))
    for name, subcommand in inner.items():
        yield from _command(subcommand, f"{called} {name}", level + 1)


def _parameter(parameter: Any) -> list[str]:
    if parameter.param_type_name == "argument":
        return [code(parameter.metavar or parameter.name), "", parameter.help or "", ""]
    names = ", ".join(map(code, [*parameter.opts, *parameter.secondary_opts]))
    value = "" if parameter.is_flag else code(parameter.metavar or parameter.type.name.upper())
    known = parameter.default not in (None, False, ()) and not callable(parameter.default)
    return [names, value, parameter.help or "", code(parameter.default) if known else ""]


# -- YAML and JSON, by their models -----------------------------------------------------------


def model(made: type[BaseModel], level: int = 2) -> str:
    """Every key of a model and of the models inside of it, a table each."""
    schema = made.model_json_schema(schema_generator=Untitled)
    page = _Model(schema.get("$defs", {}), made.__module__)
    return "\n".join(page.sections("", {"title": made.__name__, **schema}, level))


def _meanings(name: str, module: str) -> dict[str, str]:
    """What docstrings below the fields of a model of that name have on them, by key."""
    models = [model for model in _below(BaseModel) if model.__name__ == name]
    models.sort(key=lambda model: model.__module__ == module)
    return _fields(models[-1]) if models else {}


def _fields(made: type[BaseModel]) -> dict[str, str]:
    meanings = {}
    for base in reversed(made.__mro__):
        if not issubclass(base, BaseModel) or base is BaseModel:
            continue
        try:
            source = inspect.getsource(base)
        except OSError:  # of `create_model`: its fields have descriptions
            continue
        (body,) = ast.parse(textwrap.dedent(source)).body
        lines = body.body if isinstance(body, ast.ClassDef) else []
        for field, docstring in pairwise(lines):
            if isinstance(field, ast.AnnAssign) and isinstance(docstring, ast.Expr):
                key = ast.unparse(field.target)
                alias = base.model_fields[key].alias if key in base.model_fields else None
                meanings[alias or key] = str(ast.literal_eval(docstring.value))
    return meanings


def _below(made: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for subclass in made.__subclasses__():
        yield subclass
        yield from _below(subclass)


class _Model:
    """The sections of a JSON schema; a mapping that occurs twice is described once."""

    def __init__(self, inner: Json, module: str = "") -> None:
        self.inner = inner
        self.module = module
        self.places: dict[str, str] = {}

    def sections(self, place: str, schema: Json, level: int) -> Iterator[str]:
        if place:
            yield f"{'#' * level} `{place}`\n"
            yield f"{schema.get('description', '')}\n"
        required = schema.get("required", ())
        meanings = _meanings(schema["title"], self.module)
        inner_models: list[tuple[str, str]] = []
        rows = []
        for key, value in schema.get("properties", {}).items():
            below = [name for name in _names(value) if "properties" in self.inner.get(name, {})]
            here = f"{place}.{key}" if place else key
            inner_models += [(name, here) for name in below if name not in self.places]
            for name in below:
                self.places.setdefault(name, here)
            default = "required" if key in required else self.default(value)
            meaning = value.get("description") or meanings.get(key, "")
            rows.append([code(key), self.kind(value), meaning, default])
        yield table(("key", "value", "meaning", "default"), rows)
        places = [here for _, here in inner_models]
        for name, here in inner_models:
            title = f"{here} ({_words(name)})" if places.count(here) > 1 else here
            inner = {"title": name, **self.inner[name]}
            yield from self.sections(title, inner, level)

    def kind(self, schema: Json) -> str:
        """What a value is, in words."""
        if "$ref" in schema:
            return _words(_name(schema))
        if "enum" in schema or "const" in schema:
            choices = schema.get("enum", [schema.get("const")])
            return ", ".join(code(_yaml(choice)) for choice in choices)
        if several := schema.get("anyOf") or schema.get("oneOf"):
            kinds = [self.kind(one) for one in several if one.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
        if schema.get("type") == "array":
            return f"list of {self.kind(schema['items'])}" if schema.get("items") else "list"
        if schema.get("type") == "object":
            patterns = [*schema.get("patternProperties", {}).values()]
            values: Any = schema.get("additionalProperties") or (patterns[0] if patterns else True)
            return "mapping" if values is True else f"mapping to {self.kind(values)}"
        return _range(schema)

    def default(self, schema: Json) -> str:
        """What counts where nothing is given, as YAML would have it."""
        value = schema.get("default")
        if value in (None, "", [], {}):
            return ""
        if isinstance(value, list):
            inner = [self.default({**schema.get("items", {}), "default": one}) for one in value]
            return code(f"[{', '.join(inner)}]".replace("`", ""))
        if isinstance(value, dict):
            scalar = _SCALARS.get(_name(schema))
            return code(scalar(*value.values())) if scalar else ""
        return code(_yaml(value))


def _yaml(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _range(schema: Json) -> str:
    kind = {"string": "text", "boolean": "true or false"}.get(schema.get("type", ""), "")
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum")
    kind = kind or str(schema.get("type", "any value"))
    if low is None:
        return kind
    return f"{kind}, {low:,} or more" if high is None else f"{kind}, {low:,} to {high:,}"


def _name(schema: Json) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _names(schema: Any) -> Iterator[str]:
    """The models that a value may be made of, in order."""
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield _name(schema)
        for key, value in schema.items():
            if key not in ("$ref", "description", "default", "discriminator"):
                yield from _names(value)
    elif isinstance(schema, list):
        for one in schema:
            yield from _names(one)


def _words(name: str) -> str:
    """`OneWay` as `one way`."""
    text = name.removesuffix("Spec").removesuffix("Endpoint")
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in text).strip()


# -- the bundle ------------------------------------------------------------------------------

_FILES: dict[str, type[BaseModel]] = {
    "manifest.json": documents.Manifest,
    "points.json": documents.Points,
    "calibration.json": documents.Calibration,
    "rtt_steps.json": documents.RttSteps,
    "prefill.json": documents.Prefills,
    "reclaim.json": documents.Reclaims,
    "envelope.json": documents.Envelopes,
}
TABLES: dict[str, pa.Schema] = {
    "samples.parquet": tables.SAMPLES,
    "events.parquet": tables.EVENTS,
    "lateness.parquet": tables.LATENESS,
    "resources.parquet": tables.RESOURCES,
    "load.parquet": tables.LOAD,
    "packets.parquet": PACKETS,
}


def bundle() -> str:
    """Every column of the tables, every key of the JSON documents."""
    parts = [f"Schema version {documents.SCHEMA_VERSION}.\n"]
    for name, schema in TABLES.items():
        rows = [
            [code(field.name), str(field.type), (field.metadata or {})[b"meaning"].decode()]
            for field in schema
        ]
        parts += [f"### {name}\n", table(("column", "type", "meaning"), rows)]
    for name, made in _FILES.items():
        parts += [f"### {name}\n", f"{' '.join((made.__doc__ or '').split())}\n", model(made, 4)]
    return "\n".join(parts)


# -- stores and faults -----------------------------------------------------------------------


def stores() -> str:
    """Every shipped system: what it is, its API, how it is had, its options."""
    parts = []
    for name in registry.names():
        system = registry.get(name)
        known = system.definition
        parts += [f"### Options of {name}\n", f"{known.title or name}: {known.origin}.\n"]
        install = known.install
        if install is not None and install.kind not in ("path", "checkout"):
            parts.append(f"`wanlat system install {name}`: {install.takes}.\n")
        rows = [
            [code(row["name"]), row["type"], row["description"], _plain(row["default"])]
            for row in option_rows(system)
        ]
        if rows:
            parts.append(table(("option", "value", "meaning", "default"), rows))
    return "\n".join(parts)


def _plain(value: object) -> str:
    return "" if value in (None, "", [], {}) else code(value)


def faults() -> str:
    """Every kind of fault with its settings."""
    rows = []
    for kind, made in KINDS.items():
        settings = made.Settings.model_json_schema(schema_generator=Untitled)
        page = _Model(settings.get("$defs", {}))
        meanings = _fields(made.Settings)
        for key, schema in settings.get("properties", {}).items() or {"": {}}.items():
            default = "required" if key in settings.get("required", ()) else page.default(schema)
            value = page.kind(schema) if key else ""
            meaning = meanings.get(key, "")
            rows.append([code(kind), code(key) if key else "", value, meaning, default])
    return table(("fault", "setting", "value", "meaning", "default"), rows)


PARTS: dict[str, Callable[[], str]] = {
    "command-line": command_line,
    "study": lambda: model(Study),
    "drill": lambda: model(Drill),
    "system": lambda: model(Definition),
    "topology": lambda: model(Topology, 3),
    "bundle": bundle,
    "stores": stores,
    "faults": faults,
}
"""By the mark that a page has in its place: ``<!-- generated: NAME -->``."""


if __name__ == "__main__":
    for _name_ in sys.argv[1:] or PARTS:
        print(PARTS[_name_]() if sys.argv[1:] else _name_)
