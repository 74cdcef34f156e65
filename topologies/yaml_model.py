"""The base of every model that is written as a YAML mapping: topologies, studies, drills.

What must hold besides the types has one of three places. What concerns one value is a
validator of pydantic's, which raises `refused` for places inside of it. What concerns the values
of one mapping is in `invalid`. What spans a whole file is checked on its raw values,
`cross_checks`, so that it is reported also where a part of the file has the wrong type.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any, ClassVar, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from wanlat.topologies.findings import Finding, path_text
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.wording import did_you_mean, listing, show

Q = TypeVar("Q", Duration, Size)
T = TypeVar("T")


def refused(findings: Iterable[Finding]) -> PydanticCustomError:
    """What a validator raises to report mistakes inside of the value that it validates."""
    every = list(findings)
    text = "\n".join(f"{path_text(finding.path)}: {finding.text}".lstrip(": ") for finding in every)
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


def unique(advice: str, named: Callable[[Any], Any] = lambda value: value) -> AfterValidator:
    """A list of values that differ, by what `named` makes of them; `advice` follows the message."""

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

    # What to say about a key that is not one of the model's, where it has a meaning elsewhere.
    key_hints: ClassVar[dict[str, str]] = {}

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:  # noqa: ARG003
        """What is wrong across a file, besides the types of its fields.

        `raw` is the mapping as the file has it. Its types may be wrong in part: the checks run
        all the same, so that every mistake is reported in one go. Check only what has the right
        type; the types are pydantic's business. For a model made in code, `raw` is its dump:
        defaults filled in, quantities parsed. The loader calls the checks of the outermost model.
        """
        return []

    def invalid(self) -> list[Finding]:
        """What is wrong between values of this mapping, each of which is right by itself."""
        return []

    @model_validator(mode="wrap")
    @classmethod
    def _with_all_mistakes(
        cls, raw: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        """Report unknown and missing keys and what is `invalid` beside wrong values."""
        if isinstance(raw, cls):
            return handler(raw)
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        if not isinstance(raw, dict):
            sentence = f"a mapping is wanted here, not {described(raw)}"
            sentence += f"; its keys are {listing(fields)}"
            raise PydanticCustomError("mapping", "{text}", {"text": sentence})
        is_open = cls.model_config.get("extra") == "allow"
        unknown = [] if is_open else [key for key in raw if key not in fields]
        findings = [Finding((key,), cls._unknown(str(key), fields), at_key=True) for key in unknown]
        for key, field in fields.items():
            if field.is_required() and key not in raw:
                meaning = field.description and f": {field.description}"
                findings.append(Finding((), f"{show(key)} is missing{meaning or ''}"))
        errors = []
        try:
            made = handler({key: raw[key] for key in raw if key not in unknown})
        except ValidationError as problem:
            for error in problem.errors(include_url=False):
                if error["type"] != "missing" or len(error["loc"]) > 1:
                    again = PydanticCustomError(error["type"], error["msg"], error.get("ctx", {}))
                    errors.append(
                        InitErrorDetails(type=again, loc=error["loc"], input=error["input"])
                    )
        else:
            findings += made.invalid()
            if info.context is None:  # the loader checks a whole file once, on its raw values
                findings += made.cross_checks(made.model_dump())
            if not findings:
                return made
        if findings:
            errors.insert(0, InitErrorDetails(type=refused(findings), loc=(), input=raw))
        raise ValidationError.from_exception_data(cls.__name__, errors)

    @classmethod
    def _unknown(cls, key: str, known: Collection[str]) -> str:
        if key in cls.key_hints:
            return f"key {show(key)} is not allowed here: {cls.key_hints[key]}"
        return (
            f"unknown key {show(key)}{did_you_mean(key, list(known))}; allowed: {', '.join(known)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The model as plain YAML and JSON values that load to an equal model."""
        return self.model_dump(mode="json", exclude_none=True)


def described(value: Any) -> str:
    """What a YAML value is, for somebody who expected something else."""
    if value is None or isinstance(value, dict | list | tuple):
        return show(value)
    kind = {bool: "boolean", int: "number", float: "number", str: "text"}.get(type(value), "value")
    return f"the {kind} {show(value)}"
