"""Options of a system: what a study may say about it, and how a mistake in it is explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import did_you_mean, listing, show


class Options(BaseModel):
    """Options of a system. An unknown one is an error, and none changes once it is checked."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


O = TypeVar("O", bound=Options)  # noqa: E741 - the options of the system at hand


def parse(system: str, model: type[O], given: Mapping[str, object]) -> O:
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
