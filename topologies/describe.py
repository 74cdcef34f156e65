"""What pydantic says about a document, in the words of somebody who writes YAML."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, Tag
from pydantic_core import ErrorDetails

from wanlat.topologies.findings import Finding, Path
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_tree import Document

# What pydantic wanted, by the type of its error.
_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "`true` or `false`",
    "bool_parsing": "`true` or `false`",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
# Errors whose message is ours already.
_OURS = {"quantity", "name", "nodes", "between", "pair", "loss", "reorder"}


def describe(error: ErrorDetails, model: type[BaseModel], document: Document) -> list[Finding]:
    """A pydantic error on a document in the words of somebody who writes YAML.

    Several when the error is the cross-checks of a model; none when it only follows from others.
    """
    kind, loc, value = error["type"], error["loc"], error["input"]
    path = path_in(document.raw, loc)
    if kind == "cross_checks":
        return [found.under(path) for found in error["ctx"]["findings"]]
    if kind == "too_short" and len(value) >= error["ctx"]["min_length"]:
        return []  # pydantic counts only the items that are right
    if kind == "missing":
        key, owner = str(loc[-1]), _model_at(model, loc[:-1])
        return [Finding(path, f"{show(key)} is missing{_meaning(owner, key)}")]
    if kind == "extra_forbidden":
        text = _unknown_key(str(loc[-1]), _model_at(model, loc[:-1]))
        return [Finding(path, text, at_key=True)]
    source = document.text(path)
    shown = show(value if source is None else source)
    if kind in _WANTED:
        text = f"{_WANTED[kind]} is wanted here, not {_kind(value, shown)}"
        owner = _model_at(model, loc) if _WANTED[kind] == "a mapping" else None
        if owner is not None:
            text += f"; its keys are {listing(_keys(owner))}"
        elif _WANTED[kind] == "text" and isinstance(value, bool | int | float):
            text += f'; if it is meant as text, put it in quotes: "{shown.strip("`")}"'
        return [Finding(path, text)]
    return [Finding(path, error["msg"] if kind in _OURS else _sentence(error, shown))]


def _sentence(error: ErrorDetails, shown: str) -> str:
    context = error.get("ctx", {})
    match error["type"]:
        case "too_short":
            text = f"too few; at least {context['min_length']}"
        case "too_long":
            text = f"too many; at most {context['max_length']}"
        case "greater_than_equal":
            text = f"{shown} is too small; at least {context['ge']}"
        case "greater_than":
            text = f"{shown} is too small; more than {context['gt']}"
        case "less_than_equal":
            text = f"{shown} is too large; at most {context['le']}"
        case "less_than":
            text = f"{shown} is too large; less than {context['lt']}"
        case "literal_error" | "enum":
            allowed = str(context["expected"]).replace("'", "")
            near = did_you_mean(str(error["input"]), allowed.replace(" or ", ", ").split(", "))
            text = f"{shown} is not allowed here{near}; allowed: {allowed}"
        case "value_error":
            text = str(context.get("error", error["msg"]))
        case _:
            text = f"{shown}: {error['msg'][:1].lower()}{error['msg'][1:]}"
    return text


def _kind(value: Any, shown: str) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"{shown}, which is a boolean to YAML"
    if isinstance(value, int | float):
        return f"the number {shown}"
    if isinstance(value, dict | list | tuple):
        return show(value)
    return f"the text {shown}"


def _unknown_key(key: str, owner: type[BaseModel] | None) -> str:
    if owner is None:
        return f"unknown key {show(key)}"
    hint = getattr(owner, "key_hints", {}).get(key)
    if hint is not None:
        return f"key {show(key)} is not allowed here: {hint}"
    known = _keys(owner)
    return f"unknown key {show(key)}{did_you_mean(key, known)}; allowed: {', '.join(known)}"


def _keys(owner: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in owner.model_fields.items()]


def _meaning(owner: type[BaseModel] | None, key: str) -> str:
    for name, field in owner.model_fields.items() if owner is not None else ():
        if key == (field.alias or name) and field.description:
            return f": {field.description}"
    return ""


def path_in(raw: Any, loc: Sequence[str | int]) -> Path:
    """The part of a pydantic location that exists in the document.

    Pydantic puts names of union members between the keys; they lead nowhere in the document.
    """
    path: Path = ()
    here = raw
    for step in loc:
        if isinstance(here, list):
            leads_on = isinstance(step, int) and 0 <= step < len(here)
        else:
            leads_on = isinstance(here, dict) and step in here
        if leads_on:
            here = here[step]
            path = (*path, step)
    return path


def _model_at(model: type[BaseModel], loc: Sequence[str | int]) -> type[BaseModel] | None:
    """The model that describes the mapping at a pydantic location."""
    annotation: Any = model
    for step in loc:
        if isinstance(step, int):
            continue
        members = list(_members(annotation))
        tagged = [member for member, tag in members if tag == step]
        if tagged:
            annotation = tagged[0]
            continue
        for member, _tag in members:
            field = _field(member, step)
            if field is not None:
                annotation = field
                break
    models = [member for member, _tag in _members(annotation) if _is_model(member)]
    return models[0] if len(models) == 1 else None


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _field(member: Any, key: str) -> Any:
    if not _is_model(member):
        return None
    for name, field in member.model_fields.items():
        if key == (field.alias or name):
            return field.annotation
    return None


def _members(annotation: Any, tag: str | None = None) -> Iterator[tuple[Any, str | None]]:
    """What an annotation may hold, each with its union tag, through unions and containers."""
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        own = next((item.tag for item in metadata if isinstance(item, Tag)), tag)
        yield from _members(inner, own)
    elif get_args(annotation):
        for argument in get_args(annotation):
            yield from _members(argument, tag)
    else:
        yield annotation, tag
