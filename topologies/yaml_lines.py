"""A YAML file as a typed model, or every mistake in it with its line."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from wanlat.topologies import yaml_tree
from wanlat.topologies.describe import describe
from wanlat.topologies.findings import Finding, path_text
from wanlat.topologies.wording import printable
from wanlat.topologies.yaml_errors import MAX_TOLD, Mistake, YamlError
from wanlat.topologies.yaml_model import CHECKED_BY_LOADER, YamlModel
from wanlat.topologies.yaml_tree import Document, NotYamlError

# A model of thousands of nodes gives a count; what is larger than this is another file.
MAX_FILE_BYTES = 4 * 2**20

M = TypeVar("M", bound=BaseModel)


def load_yaml_model(
    path: Path,
    model: type[M],
    cross_checks: Callable[[Any], Iterable[Finding]] | None = None,
    *,
    prepare: Callable[[Any], Iterable[Finding]] | None = None,
    also: Callable[[Document, M], Iterable[Finding]] | None = None,
    error: type[YamlError] = YamlError,
) -> M:
    """The model in a YAML file, or `error` with every mistake in it; nothing else is raised.

    `cross_checks` gets the raw values of the file, of which any part may have the wrong type, and
    returns what does not fit together, besides what the `cross_checks` of a `YamlModel` find.
    `prepare` gets them first and may replace values; of a place where it finds a mistake nothing
    else is told. `also` looks at a file in which nothing else is wrong: the document, the model.
    """
    file = printable(str(path))
    document = _document(path, file, error)
    prepared = list(prepare(document.raw)) if prepare is not None else []
    loaded, findings = _validate(document, model, cross_checks, prepared)
    if loaded is not None and not findings:
        findings = list(islice(also(document, loaded), MAX_TOLD)) if also is not None else []
        if not findings:
            return loaded
    mistakes = {_mistake(found, document, file): None for found in findings}
    raise error.of(sorted(mistakes, key=lambda mistake: mistake.line or 0))


def checked(document: Document, model: type[M]) -> tuple[M | None, list[Finding]]:
    """The model that a document is, where it is one, and every mistake in it."""
    return _validate(document, model, None, [])


def _document(path: Path, file: str, error: type[YamlError]) -> Document:
    """The parsed file. What stops the reading is the only mistake that can be told."""

    def stop(text: str, line: int | None = None, column: int | None = None) -> YamlError:
        return error.of([Mistake(file, line, column, "", text)])

    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except IsADirectoryError:
        raise stop("this is a directory; give a YAML file") from None
    except FileNotFoundError:
        raise stop("there is no such file") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise stop(f"the file cannot be read: {reason}") from None
    if len(data) > MAX_FILE_BYTES:
        raise stop(f"the file is larger than {MAX_FILE_BYTES // 2**20} MiB; this is another file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        bad = f"0x{data[problem.start]:02x}"
        raise stop(f"byte {bad} is not UTF-8; save the file as UTF-8", line) from None
    try:
        document = yaml_tree.parse(text)
    except NotYamlError as problem:
        raise stop(problem.text, problem.line, problem.column) from None
    if document.raw is None:
        raise stop("the file is empty")
    return document


def _validate(
    document: Document,
    model: type[M],
    cross_checks: Callable[[Any], Iterable[Finding]] | None,
    prepared: list[Finding],
) -> tuple[M | None, list[Finding]]:
    loaded = None
    told: list[Finding] = []
    unprepared = {found.path for found in prepared}
    try:
        within = issubclass(model, YamlModel) and model.checks_all_within
        context = CHECKED_BY_LOADER if within else None
        loaded = model.model_validate(document.raw, context=context)
    except ValidationError as problem:
        for each in islice(problem.errors(include_url=False), MAX_TOLD):
            told += describe(each, model, document)
    # The checks run whether or not the types are right, so that all mistakes are told at once.
    wrong = {found.path for found in told if document.text(found.path) is not None}
    checked: list[Finding] = []
    if issubclass(model, YamlModel):
        checked += model.cross_checks(document.raw)
    if cross_checks is not None:
        checked += cross_checks(document.raw)
    told += [found for found in checked if found.path not in wrong]
    told = [*prepared, *(found for found in told if found.at_key or found.path not in unprepared)]
    every = dict.fromkeys(_joined(document.findings, told))
    return loaded, list(islice(every, MAX_TOLD))


def _joined(odd: list[Finding], told: list[Finding]) -> Iterator[Finding]:
    """Both lists, where what is odd to YAML and wrong to the model at one place is one mistake."""
    about = {found.path: found for found in told if not found.at_key}
    for found in odd:
        if not found.at_key and found.path in about:
            reason, _, _ = found.text.partition("; ")
            text = f"{reason}, and {about.pop(found.path).text}"
            yield replace(found, text=text)
        else:
            yield found
    yield from (found for found in told if found.at_key or found.path in about)


def _mistake(found: Finding, document: Document, file: str) -> Mistake:
    line = found.line or document.line(found.path, found.at_key)
    text = found.text
    if found.see is not None:
        text += f" (first in line {document.line(found.see)})"
    return Mistake(file, line, None, path_text(found.path), text)
