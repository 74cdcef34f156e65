"""A file of YAML or JSON as plain values, of one document or several."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from wanlat.topologies.errors import UserError
from wanlat.topologies.text_files import UnreadableFile, read_text
from wanlat.topologies.yaml_lines import MAX_FILE_BYTES
from wanlat.topologies.yaml_tree import NotYamlError, parse

_BETWEEN = re.compile(r"^---(?=\s|$)", re.MULTILINE)


def documents(path: Path) -> list[Any]:
    """The documents in a file that are not empty. Raises UserError with the line."""
    made, line = [], 0
    try:
        text = read_text(path, "a YAML file", MAX_FILE_BYTES)
        for part in _BETWEEN.split(text):
            document = parse(part)
            made += [document.raw] if document.raw is not None else []
            line += part.count("\n")
    except UnreadableFile as problem:
        raise UserError(problem.at(str(path))) from None
    except NotYamlError as problem:
        raise UserError(f"{path}:{line + (problem.line or 1)}: {problem.text}") from None
    return made
