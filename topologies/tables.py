"""An empirical distribution: the samples that a topology's `table` holds or names a file of."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import PydanticCustomError, core_schema

from wanlat.topologies import shapes
from wanlat.topologies.errors import UserError
from wanlat.topologies.limits import LARGEST_SAMPLE, MAX_SAMPLES
from wanlat.topologies.text_files import UnreadableFile, read_text
from wanlat.topologies.wording import printable, show

_MAX_BYTES = 64 * 2**20  # a million lines of 64 characters

_Sample = Annotated[float, Field(strict=True, ge=-LARGEST_SAMPLE, le=LARGEST_SAMPLE)]
_Samples = Annotated[list[_Sample], Field(min_length=2, max_length=MAX_SAMPLES)]


class TableError(UserError, ValueError):
    """Samples that make no distribution."""


@dataclass(frozen=True)
class Table:
    """Samples in any unit, for only their shape counts: 2 to 4096 of them, ascending.

    Of more samples, it holds the means of 4096 groups of neighbours.
    """

    samples: tuple[float, ...]

    @cached_property
    def quantiles(self) -> tuple[float, ...]:
        """The shape that packets draw from: 4096 quantiles, mean 0, standard deviation 1."""
        return shapes.empirical(self.samples)

    @classmethod
    def of_samples(cls, samples: Iterable[float]) -> "Table":
        """The table of 2 to 1,000,000 samples in any order, or TableError."""
        values = list(samples)
        if not 2 <= len(values) <= MAX_SAMPLES:
            raise TableError(f"{len(values)} samples; a distribution needs 2 to {MAX_SAMPLES}")
        ordered = shapes.reduced(values)
        if ordered[0] == ordered[-1]:
            raise TableError(
                f"all {len(values)} samples are {values[0]:g}, which is no distribution;"
                " a delay that never varies has no `jitter`"
            )
        return cls(tuple(ordered))

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Numbers, or a file's name where the context has a directory; dumped as its numbers."""

        def validate(
            value: Any, numbers: core_schema.ValidatorFunctionWrapHandler, info: ValidationInfo
        ) -> Table:
            if isinstance(value, Table):
                return value
            try:
                if isinstance(value, str):
                    return _in_file(value, info)
                return cls.of_samples(numbers(value))
            except TableError as error:
                raise PydanticCustomError("table", "{text}", {"text": str(error)}) from None

        return core_schema.with_info_wrap_validator_function(
            validate,
            handler.generate_schema(_Samples),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda table, info: list(table.samples) if info.mode == "json" else table,
                info_arg=True,
            ),
            ref=f"{cls.__module__}.{cls.__qualname__}:{id(cls)}",
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """What a file may hold: a file's name, or the numbers."""
        numbers = handler(schema["schema"])
        file = {
            "type": "string",
            "minLength": 1,
            "description": "a file of numbers, relative to this file",
        }
        about = "Samples in any unit, of which only the shape counts."
        return {"description": about, "anyOf": [file, numbers]}


def _in_file(name: str, info: ValidationInfo) -> Table:
    context = info.context or {}
    directory = context.get("directory")
    if directory is None:
        raise TableError(
            "a file of samples is read when a topology file is loaded;"
            " elsewhere give the numbers themselves"
        )
    known: dict[str, Table] = context.setdefault("tables", {})  # each file is read once
    if name not in known:
        known[name] = read(directory / name)  # relative to the topology file
    return known[name]


def read(path: Path) -> Table:
    """The table in a file of numbers: one a line, or several, as iproute2's `.dist` has them.

    Empty lines and what follows `#` are passed over. TableError with the file's line when it holds
    anything else.
    """
    file = printable(str(path))
    numbers = []
    try:
        lines = read_text(path, "a file of samples", _MAX_BYTES).split("\n")
        for line, text in enumerate(lines, start=1):
            numbers += [_number(cell, line) for cell in text.partition("#")[0].split()]
        return Table.of_samples(numbers)
    except UnreadableFile as problem:
        raise TableError(problem.at(file)) from None
    except TableError as error:
        raise TableError(f"{file}: {error}") from None


def _number(cell: str, line: int) -> float:
    try:
        number = float(cell)
    except ValueError:
        raise UnreadableFile(f"{show(cell)} is no number", line) from None
    if not abs(number) <= LARGEST_SAMPLE:
        raise UnreadableFile(f"{show(cell)} is not within ±{LARGEST_SAMPLE:g}", line)
    return number
