"""Options of a system: what a study may set, and how a mistake in it is explained."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    create_model,
)

from wanlat.systems.engine.definition import Option
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.wording import did_you_mean, listing, show

_TYPES: dict[str, Any] = {
    "integer": int,
    "number": float,
    "text": str,
    "boolean": bool,
    "duration": Duration,
    "size": Size,
    "node": str,
    "path": Path,
}


class Options(BaseModel):
    """Options of a system. An unknown one is an error, and none changes once it is checked."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def model_of(system: str, options: Mapping[str, Option]) -> type[Options]:
    """Return the model of a system's options."""
    fields: dict[str, Any] = {name: _field(option) for name, option in options.items()}
    return create_model(f"Options of {system}", __base__=Options, **fields)


def _field(option: Option) -> tuple[Any, Any]:
    kind = Literal[tuple(option.of or ())] if option.type == "choice" else _TYPES[option.type]
    if option.min is not None or option.max is not None:
        kind = Annotated[kind, Field(ge=option.min, le=option.max)]
    if option.pattern is not None:
        kind = _matching(kind, option)
    if option.many is not None:
        kind = tuple[kind, ...] if option.many == "list" else dict[str, kind]  # type: ignore[valid-type]
    default = option.default
    if default is None and option.many is None:
        kind = kind | None
    elif option.many == "list":
        default = tuple(default or ())
    elif option.many == "mapping":
        default = default or {}
    return kind, Field(default, validate_default=True, description=option.description or None)


def _matching(kind: Any, option: Option) -> Any:
    pattern = str(option.pattern)
    if option.expected is None:
        return Annotated[kind, StringConstraints(pattern=pattern)]

    def check(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(f"must be {option.expected}")
        return text

    return Annotated[kind, AfterValidator(check)]


def parse(system: str, model: type[Options], given: Mapping[str, object]) -> Options:
    """Return the checked options of a system. UserError lists every mistake."""
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        mistakes = [_mistake(model, one["type"], one["loc"], one) for one in error.errors()]
        raise UserError(f"Options of system {system}: {'; '.join(mistakes)}.") from None


def _mistake(
    model: type[Options], kind: str, where: tuple[int | str, ...], details: Mapping[str, object]
) -> str:
    name = ".".join(map(str, where))
    known = sorted(model.model_fields)
    if kind == "extra_forbidden":
        options = f"the options are {listing(known)}" if known else "it has no options"
        return f"{show(name)} is unknown{did_you_mean(name, known)}; {options}"
    wrong = str(details["msg"]).removeprefix("Value error, ")
    return f"{show(name)} is {show(details['input'])}: {wrong[:1].lower()}{wrong[1:]}"
