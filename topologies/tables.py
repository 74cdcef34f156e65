"""An empirical distribution: the samples that a topology's `table` holds or names a file of."""

import csv
import math
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from wanlat.topologies import shapes
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding
from wanlat.topologies.findings import Path as Place
from wanlat.topologies.limits import LARGEST_SAMPLE, MAX_SAMPLES
from wanlat.topologies.wording import did_you_mean, listing, printable, show

_MAX_BYTES = 64 * 2**20  # a million lines of 64 characters
_NUMBER = re.compile(
    r"[-+]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?"
)
_WAYS = (
    "a table is the name of a file of samples, `{file: FILE, column: NAME}`,"
    " or a list of numbers such as `[41.2, 40.7, 55.3]`"
)


class TableError(UserError, ValueError):
    """Samples that make no distribution. `findings` has what is wrong, by position in a list."""

    def __init__(self, text: str, findings: Iterable[Finding] = ()) -> None:
        """Without findings when it is the table as a whole."""
        super().__init__(text)
        self.findings = tuple(findings) or (Finding((), text),)


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
    def of(cls, samples: Iterable[float]) -> "Table":
        """The table of 2 to 1,000,000 samples in any order, or TableError."""
        values = list(samples)
        if len(values) < 2:
            raise TableError(f"{_count(len(values))}; a distribution needs at least two")
        if len(values) > MAX_SAMPLES:
            raise TableError(f"{_count(len(values))}; at most {MAX_SAMPLES}")
        ordered = shapes.reduced(values)
        if ordered[0] == ordered[-1]:
            raise TableError(
                f"all {len(values)} samples are {values[0]:g}, which is no distribution;"
                " a delay that never varies has no `jitter`"
            )
        return cls(tuple(ordered))

    @classmethod
    def parse(cls, value: object) -> "Table":
        """The table in a list of numbers, or TableError. Files are read by `inline_all` before."""
        if isinstance(value, Table):
            return value
        if isinstance(value, str | dict):
            raise TableError(
                "a file of samples is read when a topology file is loaded;"
                " elsewhere give the numbers themselves"
            )
        if not isinstance(value, list | tuple):
            raise TableError(f"{show(value)} is no table; {_WAYS}")
        numbers, wrong = [], []
        for index, item in enumerate(value):
            try:
                numbers.append(_number(item))
            except TableError as error:
                wrong.append(Finding((index,), str(error)))
        if wrong:
            raise TableError(wrong[0].text, wrong)
        return cls.of(numbers)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """A pydantic field of this type takes what `parse` takes and is dumped as its numbers."""

        def validate(value: object) -> Table:
            try:
                return cls.parse(value)
            except TableError as error:
                context = {"text": str(error), "findings": list(error.findings)}
                raise PydanticCustomError("cross_checks", "{text}", context) from None

        return core_schema.no_info_plain_validator_function(
            validate,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda table: list(table.samples), when_used="json"
            ),
            ref=f"{cls.__module__}.{cls.__qualname__}:{id(cls)}",
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """What a file may hold: a file's name, with a column or without, or the numbers."""
        return {
            "description": "Samples in any unit, of which only the shape counts.",
            "anyOf": [
                {
                    "type": "string",
                    "minLength": 1,
                    "description": "a file of one number a line, relative to this file",
                },
                {
                    "type": "object",
                    "properties": {
                        "file": {"type": "string", "minLength": 1},
                        "column": {"type": "string"},
                    },
                    "required": ["file", "column"],
                    "additionalProperties": False,
                    "description": "one column of a CSV file whose first line names its columns",
                },
                {
                    "type": "array",
                    "items": {
                        "anyOf": [
                            {
                                "type": "number",
                                "minimum": -LARGEST_SAMPLE,
                                "maximum": LARGEST_SAMPLE,
                            },
                            {"type": "string", "pattern": f"^{_NUMBER.pattern}$"},
                        ]
                    },
                    "minItems": 2,
                    "maxItems": MAX_SAMPLES,
                },
            ],
        }


def inline_all(raw: Any, directory: Path) -> list[Finding]:
    """Put the samples in the place of every table of a raw topology: a file's name, or a list.

    A file is read once, relative to the directory. Returns what is wrong with the files; there
    the name stays. A list that is no table stays too: the model tells what is wrong with it.
    """
    known: dict[str, Table | TableError] = {}
    return [
        found.under((*path, "table"))
        for path, link in _links(raw)
        for found in _inline(link, directory, known)
    ]


def _links(raw: Any) -> Iterator[tuple[Place, dict[Any, Any]]]:
    """Every mapping in which a `table` may stand."""
    top = raw if isinstance(raw, dict) else {}
    sites = top.get("sites")
    for index, site in enumerate(sites if isinstance(sites, list) else []):
        if not isinstance(site, dict):
            continue
        if isinstance(site.get("lan"), dict):
            yield ("sites", index, "lan"), site["lan"]
        access = site.get("access")
        for way, line in access.items() if isinstance(access, dict) else ():
            if isinstance(line, dict):
                yield ("sites", index, "access", way), line
    links = top.get("links")
    if not isinstance(links, dict):
        return
    if isinstance(links.get("default"), dict):
        yield ("links", "default"), links["default"]
    pairs = links.get("pairs")
    for index, pair in enumerate(pairs if isinstance(pairs, list) else []):
        if isinstance(pair, dict):
            yield ("links", "pairs", index), pair


def _inline(
    link: dict[Any, Any], directory: Path, known: dict[str, "Table | TableError"]
) -> tuple[Finding, ...]:
    asked = link.get("table")
    if isinstance(asked, list):
        with suppress(TableError):
            link["table"] = Table.parse(asked)  # once, where the checks and the model would each
    if not isinstance(asked, str | dict):
        return ()
    key = repr(asked)
    if key not in known:
        try:
            known[key] = _asked(asked, directory)
        except TableError as error:
            known[key] = error
    found = known[key]
    if isinstance(found, TableError):
        return found.findings
    link["table"] = found
    return ()


def _asked(asked: str | dict[Any, Any], directory: Path) -> Table:
    if isinstance(asked, str):
        return read(directory / _name(asked))
    if set(asked) != {"file", "column"} or not all(isinstance(v, str) for v in asked.values()):
        raise TableError(f"a mapping here is `{{file: FILE, column: NAME}}`; {_WAYS}")
    return read(directory / _name(asked["file"]), asked["column"])


def _name(file: str) -> str:
    if not file:
        raise TableError(f"an empty value; {_WAYS}")
    return file


def read(path: Path, column: str | None = None) -> Table:
    """The table in a file: one number a line, or with `column` that column of a CSV file.

    Empty lines and what follows `#` are passed over. The first other line of a CSV file names its
    columns. TableError with the file's line when it holds anything else.
    """
    file = printable(str(path))
    lines = _lines(path, file)
    numbers, wrong = [], []
    cells = ((number, line.strip()) for number, line in lines)
    for number, cell in cells if column is None else _column(lines, column, file):
        try:
            numbers.append(_number(cell))
        except TableError as error:
            wrong.append((number, str(error), cell))
        if len(numbers) + len(wrong) > MAX_SAMPLES:
            raise TableError(f"{file} has more than {MAX_SAMPLES} samples; take a part of them")
    if wrong:
        number, text, cell = wrong[0]
        more = f" (and so in {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        if column is None and "," in cell:
            first = cell.rpartition(",")[2].strip() or "NAME"
            more += (
                f"; of a CSV file, name the column:"
                f" `table: {{file: {printable(path.name)}, column: {printable(first)}}}`"
            )
        raise TableError(f"{file}:{number}: {text}{more}")
    try:
        return Table.of(numbers)
    except TableError as error:
        raise TableError(f"{file}: {error}") from None


def _column(lines: Iterator[tuple[int, str]], column: str, file: str) -> Iterator[tuple[int, str]]:
    """Line number and cell of one column."""
    header: list[str] | None = None
    for number, line in lines:
        try:
            cells = [cell.strip() for cell in next(csv.reader([line], strict=True), [])]
        except csv.Error as error:
            raise TableError(f"{file}:{number}: not CSV: {error}") from None
        if header is None:
            header = cells
            if column not in header:
                names = listing((show(name) for name in header), "and", at_most=20)
                near = did_you_mean(column, header)
                raise TableError(f"{file} has no column {show(column)}{near}; it has {names}")
            if header.count(column) > 1:
                raise TableError(f"{file}:{number}: two columns are named {show(column)}")
            place = header.index(column)
            continue
        yield number, cells[place] if place < len(cells) else ""
    if header is None:
        raise TableError(f"{file} is empty; the first line names the columns")


def _lines(path: Path, file: str) -> Iterator[tuple[int, str]]:
    """The lines that hold something, with their numbers, without comments."""
    text = _text(path, file)
    for number, line in enumerate(re.split("\r\n|\n|\r", text), start=1):
        content = line.partition("#")[0]
        if content.strip():
            yield number, content


def _text(path: Path, file: str) -> str:
    try:
        # Without blocking, for a pipe would wait for somebody to write into it.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as f:
            if not stat.S_ISREG(os.fstat(f.fileno()).st_mode):
                raise TableError(f"{file} is no regular file; give a file of samples")
            data = f.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise TableError(
            f"there is no file {file}; its name is relative to the topology file"
        ) from None
    except IsADirectoryError:
        raise TableError(f"{file} is a directory; give a file of samples") from None
    except TableError:
        raise
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise TableError(f"{file} cannot be read: {reason}") from None
    if len(data) > _MAX_BYTES:
        raise TableError(f"{file} is larger than {_MAX_BYTES // 2**20} MiB; take a part of it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise TableError(
            f"{file}:{line}: byte 0x{data[problem.start]:02x} is not UTF-8; a table is text"
        ) from None


def _number(value: object) -> float:
    if isinstance(value, str):
        if _NUMBER.fullmatch(value) is None:
            shown = "an empty value" if value == "" else show(value)
            raise TableError(f"{shown} is no number")
        number = float(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) <= LARGEST_SAMPLE else math.inf
    else:
        raise TableError(f"{show(value)} is no number")
    if math.isnan(number) or abs(number) > LARGEST_SAMPLE:
        shown = show(value)
        raise TableError(f"{shown} is not within ±{LARGEST_SAMPLE:g}")
    return number


def _count(count: int) -> str:
    return {0: "no samples", 1: "one sample"}.get(count, f"{count} samples")
