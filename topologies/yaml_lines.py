"""A YAML file as a typed model, or every mistake in it with its line."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from wanlat.topologies import yaml_tree
from wanlat.topologies.findings import MAX_FINDINGS, Finding, Mistake, YamlError, path_text
from wanlat.topologies.findings import Path as Place
from wanlat.topologies.text_files import UnreadableFile, read_text
from wanlat.topologies.wording import did_you_mean, printable, show
from wanlat.topologies.yaml_model import YamlModel, described
from wanlat.topologies.yaml_tree import Document, NotYamlError

# A model of thousands of nodes gives a count; what is larger than this is another file.
MAX_FILE_BYTES = 4 * 2**20

M = TypeVar("M", bound=BaseModel)
_PLACEHOLDER = re.compile(r"<[^<>]*>")

# What pydantic wanted, by what the type of its error begins with.
_WANTED = {
    **{"string": "text", "int": "a whole number", "float": "a number", "bool": "`true` or `false`"},
    **{"tuple": "a list", "list": "a list", "dict": "a mapping", "model": "a mapping"},
}
# What it found wrong with a value of the right type; the names are those of the error's context.
_LIMITS = {
    "too_short": "too few; at least {min_length}",
    "too_long": "too many; at most {max_length}",
    "greater_than_equal": "{shown} is too small; at least {ge}",
    "greater_than": "{shown} is too small; more than {gt}",
    "less_than_equal": "{shown} is too large; at most {le}",
    "less_than": "{shown} is too large; less than {lt}",
    "string_pattern_mismatch": "{shown} does not match `{pattern}`",
    "value_error": "{error}",
    "missing": "{key} is missing",
    "extra_forbidden": "unknown key {key}",
}


def load_yaml_model(
    path: Path,
    model: type[M],
    *,
    also: Callable[[Document, M], Iterable[Finding]] | None = None,
    error: type[YamlError] = YamlError,
) -> M:
    """The model in a YAML file, or `error` with every mistake in it; nothing else is raised.

    `also` looks at a file in which nothing else is wrong: the document, the model. Validators find
    the file's directory under `directory` in their context.
    """
    file = printable(str(path))
    try:
        document = yaml_tree.parse(read_text(path, "a YAML file", MAX_FILE_BYTES))
        if document.raw is None:
            raise NotYamlError("the file is empty")
    except (UnreadableFile, NotYamlError) as problem:
        column = getattr(problem, "column", None)
        raise error.of_mistakes([Mistake(file, problem.line, column, "", problem.text)]) from None
    loaded, findings = checked(document, model, path.parent)
    if loaded is not None and not findings:
        findings = list(islice(also(document, loaded), MAX_FINDINGS)) if also is not None else []
        if not findings:
            return loaded
    mistakes = {_mistake(finding, document, file): None for finding in findings}
    raise error.of_mistakes(sorted(mistakes, key=lambda mistake: mistake.line or 0))


def checked(
    document: Document, model: type[M], directory: Path | None = None
) -> tuple[M | None, list[Finding]]:
    """The model that a document is, where it is one, and every mistake in it.

    `directory` is the one that names of files are relative to; without one they are not read.
    """
    loaded, findings = None, list(document.findings)
    try:
        loaded = model.model_validate(document.raw, context={"directory": directory})
    except ValidationError as problem:
        wrong = {finding.path for finding in findings}
        for mistake in islice(problem.errors(include_url=False), MAX_FINDINGS):
            described_as = describe(mistake, document.raw)
            findings += [finding for finding in described_as if finding.path not in wrong]
    # The checks run whether or not the types are right, so that all mistakes are reported at once.
    if issubclass(model, YamlModel):
        wrong = {finding.path for finding in document.findings}
        more = model.cross_checks(document.raw)
        findings += [finding for finding in more if finding.path not in wrong]
    return loaded, list(islice(dict.fromkeys(findings), MAX_FINDINGS))


def describe(error: ErrorDetails, raw: Any) -> list[Finding]:
    """A pydantic error on raw values in the words of somebody who writes YAML.

    Several when it has been raised with `refused`; none when it only follows from others.
    """
    kind, loc, value, context = error["type"], error["loc"], error["input"], error.get("ctx", {})
    path = path_in(raw, loc)
    wanted, _, rule = kind.partition("_")
    text = error["msg"]
    if kind == "cross_checks":
        return [finding.under(path) for finding in context["findings"]]
    if kind == "too_short" and len(value) >= context["min_length"]:
        return []  # pydantic counts only the items that are right
    if wanted in _WANTED and rule in ("type", "parsing", "from_float", "attributes_type"):
        text = f"{_WANTED[wanted]} is wanted here, not {described(value)}"
        if kind == "string_type" and isinstance(value, bool | int | float):
            text += f'; if it is meant as text, put it in quotes: "{str(value).lower()}"'
        if wanted == "list" and isinstance(value, str) and "," in value:
            text += f"; in brackets it is one: [{value}]"
    elif kind in _LIMITS:
        key = show(loc[-1]) if loc else ""
        text = _LIMITS[kind].format(**{"shown": show(value), "key": key, **context})
    elif kind in ("literal_error", "enum"):
        allowed = str(context["expected"]).replace("'", "")
        near = did_you_mean(str(value), allowed.replace(" or ", ", ").split(", "))
        text = f"{show(value)} is not allowed here{near}; allowed: {allowed}"
    if isinstance(value, str) and _PLACEHOLDER.fullmatch(value):
        text += "; that is a placeholder: put a value in its place"
    return [Finding(path, text)]


def path_in(raw: Any, loc: Sequence[str | int]) -> Place:
    """The part of a pydantic location that exists in the document.

    Pydantic puts names of union members between the keys; they lead nowhere in the document.
    """
    path: Place = ()
    for step in loc:
        if isinstance(raw, list):
            leads_on = isinstance(step, int) and 0 <= step < len(raw)
        else:
            leads_on = isinstance(raw, dict) and step in raw
        if leads_on:
            raw, path = raw[step], (*path, step)
    return path


def _mistake(finding: Finding, document: Document, file: str) -> Mistake:
    text = finding.text
    if finding.see is not None:
        text += f" (first in line {document.line(finding.see)})"
    return Mistake(file, document.line(finding.path), None, path_text(finding.path), text)
