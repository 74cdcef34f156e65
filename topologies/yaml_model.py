"""The base of every model that is written as a YAML mapping: topologies, studies, drills.

What must hold besides the types is said in one of two ways. What concerns one value, or values that
stand together, is a validator of pydantic's, which raises `refused` where they have places of
their own. What spans a whole file is checked on its raw values, `cross_checks`, so that it is
reported also where a part of the file has the wrong type.
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from wanlat.topologies.findings import Finding, path_text
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.wording import show

# The context of a validation whose cross-checks run outside of it, once.
CHECKED_BY_LOADER = {"checked": "by the loader"}

Q = TypeVar("Q", Duration, Size)
T = TypeVar("T")


def refused(findings: Iterable[Finding]) -> PydanticCustomError:
    """What a validator raises to report mistakes inside of the value that it validates."""
    every = list(findings)
    text = "\n".join(f"{path_text(found.path)}: {found.text}" for found in every)
    return PydanticCustomError("cross_checks", "{text}", {"text": text, "findings": every})


def within(least: Q, most: Q | None = None, why: str = "") -> AfterValidator:
    """A quantity from `least` to `most`, both included; from the smallest one: more than 0."""
    allowed = "more than 0" if least == type(least)(1) else f"at least {least}"
    allowed += "" if most is None else f" and at most {most}"

    def check(value: Q) -> Q:
        if value < least or (most is not None and value > most):
            raise ValueError(f"{show(str(value))} is not {allowed}{why}")
        return value

    return AfterValidator(check)


def unique(advice: str, named: Callable[[Any], Any] = lambda each: each) -> AfterValidator:
    """A list whose values differ, by what `named` makes of them; `advice` follows the message."""

    def check(values: list[T]) -> list[T]:
        first: dict[str, int] = {}
        places = [first.setdefault(repr(named(value)), place) for place, value in enumerate(values)]
        doubles = [
            Finding((place,), f"{show(named(value))} is given twice; {advice}", see=(before,))
            for place, (value, before) in enumerate(zip(values, places, strict=True))
            if before != place
        ]
        if doubles:
            raise refused(doubles)
        return values

    return AfterValidator(check)


class YamlModel(BaseModel):
    """A mapping in a YAML file: frozen, every key known, dumped with the keys of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    # Whether the cross-checks of this model include those of every model in it.
    checks_all_within: ClassVar[bool] = False

    # What to say about a key that is not one of the model's, where it has a meaning elsewhere.
    key_hints: ClassVar[dict[str, str]] = {}

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:  # noqa: ARG003
        """What is wrong between the fields of a mapping, besides their types.

        `raw` is the mapping as the file has it, whose types may be wrong in part: the checks run
        all the same, so that every mistake is told in one go. Check only what has the right
        type; the types are pydantic's business. For a model made in code, `raw` is its dump:
        defaults filled in, quantities parsed. The loader calls the checks of the outermost model,
        which calls those of the models in it.
        """
        return []

    @model_validator(mode="after")
    def _holds_together(self, info: ValidationInfo) -> Self:
        if info.context is not CHECKED_BY_LOADER:
            findings = self.cross_checks(self.model_dump())
            if findings:
                raise refused(findings)
        return self

    def to_dict(self) -> dict[str, Any]:
        """The model as plain YAML and JSON values that load to an equal model."""
        return self.model_dump(mode="json", exclude_none=True)
