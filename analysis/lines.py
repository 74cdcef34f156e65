"""Files of one JSON object a line, whose writer may have been killed in the middle of the last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wanlat.analysis.errors import BundleError


def read_lines(path: Path) -> tuple[list[dict[str, Any]], bool]:
    """The objects of `path`, and whether a cut last line had to be left out.

    Raises BundleError for a file that cannot be read and for a broken line that is not the last.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise BundleError(f"{path} cannot be read: {error.strerror or error}.") from error
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("a JSON object was expected")
        except ValueError as error:
            # Only the line that the writer was in the middle of may be broken: the one that no
            # newline ends. Anything else is damage, and a report must not paper over it.
            if number == len(lines):
                return rows, True
            raise BundleError(
                f"{path}, line {number}, is damaged ({error}). Only the last line of a killed "
                "run may be cut short; run the study again."
            ) from error
        rows.append(row)
    return rows, False
