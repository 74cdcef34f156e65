"""A file of YAML or JSON as plain values, of one document or several."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from wanlat.topologies.errors import UserError
from wanlat.topologies.text_files import UnreadableFile, read_text
from wanlat.topologies.wording import show
from wanlat.topologies.yaml_lines import MAX_FILE_BYTES
from wanlat.topologies.yaml_tree import NotYamlError, parse

_BETWEEN = re.compile(r"^---(?=\s|$)", re.MULTILINE)


def mapping(value: object, where: str) -> dict[str, Any]:
    """A value that is to be a mapping, by text; none is empty. Raises UserError."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UserError(f"{where} is {show(value)}, and no mapping of keys")
    return {str(key): inner for key, inner in value.items()}


def documents(path: Path) -> list[Any]:
    """The documents in a file that are not empty, a Kubernetes List's items among them.

    Raises UserError with the line.
    """
    made, line = [], 0
    try:
        text = read_text(path, "a YAML file", MAX_FILE_BYTES)
        for part in _BETWEEN.split(text):
            document = parse(part)
            made += _items(document.raw)
            line += part.count("\n")
    except UnreadableFile as problem:
        raise UserError(problem.at(str(path))) from None
    except NotYamlError as problem:
        raise UserError(f"{path}:{line + (problem.line or 1)}: {problem.text}") from None
    return made


def _items(document: Any) -> list[Any]:
    """`kubectl get -o yaml` wraps what it got."""
    is_list = isinstance(document, dict) and document.get("kind") == "List"
    if is_list and isinstance(items := document.get("items"), list):
        return [item for item in items if item is not None]
    return [] if document is None else [document]
