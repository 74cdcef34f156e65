"""What users set by name, of a change or a fault: known keys, values of their units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ValidationError

from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding, path_text
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.wording import listing, show
from wanlat.topologies.yaml_model import YamlModel

M = TypeVar("M", bound=YamlModel)
Q = TypeVar("Q", Duration, Size)


def _more_than_none(value: Q) -> Q:
    if value == type(value).parse(0):
        raise ValueError(f"{show(str(value))} changes nothing; give more than that")
    return value


MoreThanNone = AfterValidator(_more_than_none)
"""Of a quantity: what does nothing is a mistake."""

PositiveDuration = Annotated[Duration, MoreThanNone]
PositiveSize = Annotated[Size, MoreThanNone]


def checked(model: type[M], given: Mapping[str, Any]) -> M:
    """Return what was given as a model. Raises UserError with all that is wrong, and the keys."""
    if given and not model.model_fields:
        raise UserError(f"it has no settings; remove {listing(map(show, given))}")
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        wrong = dict.fromkeys(
            each for one in error.errors(include_url=False) for each in _said(one)
        )
        raise UserError("; ".join(wrong)) from None


def _said(error: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong, each with the way to it."""
    # In parentheses are alternatives of the model's, not keys of the user's.
    path = tuple(step for step in error["loc"] if not str(step).startswith("("))
    wrong = error["msg"].removeprefix("Value error, ")
    for found in error.get("ctx", {}).get("findings", [Finding((), wrong)]):
        where = path_text(path + found.path)
        yield found.text if found.at_key or not where else f"{where}: {found.text}"
