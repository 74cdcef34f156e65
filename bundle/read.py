"""Reading a bundle: every file is checked on the way in, and says what is wrong with it.

A run that was killed leaves `NAME.jsonl`, whose last line may be cut short; a run that ended has
`NAME.parquet`. Where both exist the run died while converting, so the lines, which are removed
last, are the complete ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from wanlat.bundle.documents import SCHEMA_VERSION, Document, Manifest
from wanlat.bundle.errors import BundleError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

D = TypeVar("D", bound=Document)
_MOST_MISTAKES = 5
_AGAIN = "The bundle cannot be trusted; run the study again."


def read_manifest(directory: Path) -> Manifest:
    """The manifest of the bundle in `directory`.

    Raises BundleError where there is none, or one of another schema, or a damaged one.
    """
    path, no_bundle = directory / "manifest.json", f"{directory} is not a bundle:"
    if not path.is_file():
        what = "it has no manifest.json" if directory.is_dir() else "there is no such directory"
        raise BundleError(
            f"{no_bundle} {what}. Give the directory that `wanlat run` named when it ended."
        )
    document = read_json(path)
    version = document.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise BundleError(
            f"{no_bundle} its manifest.json has no number under `schema_version`, so something "
            "else wrote it."
        )
    if version != SCHEMA_VERSION:
        raise BundleError(
            f"{directory} has schema version {version}, and this wanlat reads {SCHEMA_VERSION}. "
            f"It was written by wanlat {document.get('wanlat', 'another one')}; use that version"
            f"{' or a newer one' if version > SCHEMA_VERSION else ''}."
        )
    return _checked(Manifest, document, path)


def read_document(directory: Path, model: type[D]) -> D | None:
    """The bundle's document of that kind; None where it has none. Raises BundleError."""
    path = directory / model.FILE
    return _checked(model, read_json(path), path) if path.is_file() else None


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in `path`; BundleError if it cannot be read or is something else."""
    try:
        return _object(_bytes_of(path))
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path} is damaged: it is not JSON ({error}). {_AGAIN}") from error


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BundleError(f"{path} cannot be read: {error.strerror or error}.") from error


def _object(text: bytes) -> dict[str, Any]:
    """The JSON object in `text`. Raises ValueError, RecursionError."""
    value = json.loads(text, parse_constant=_no_number)
    if not isinstance(value, dict):
        raise ValueError("a JSON object was expected")
    return value


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _checked(model: type[D], document: object, path: Path) -> D:
    """`document` as what `model` makes of it. Raises BundleError."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        mistakes = [
            f"{'.'.join(map(str, each['loc']))}: {each['msg']}"
            for each in error.errors(include_url=False, include_input=False)
        ]
        more = f" (and {n} more)" if (n := len(mistakes) - _MOST_MISTAKES) > 0 else ""
        told = "; ".join(mistakes[:_MOST_MISTAKES])
        raise BundleError(f"{path} is damaged: {told}{more}. {_AGAIN}") from error


def read_table(
    directory: Path, name: str, kinds: Mapping[str, str] | None = None
) -> tuple[pd.DataFrame, Path, bool] | None:
    """The rows of a table of a bundle, the file that they are from, and whether it was cut short.

    Of a Parquet file only the columns in `kinds` are read, where given, and those of the kind
    "string" as categories: each word once.
    None where the run left neither lines nor a table. Raises BundleError for a damaged file.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    lines, table = directory / f"{name}.jsonl", directory / f"{name}.parquet"
    if lines.is_file():
        rows, is_cut = read_lines(lines)
        return pd.DataFrame.from_records(rows), lines, is_cut
    if not table.is_file():
        return None
    try:
        known = pq.read_schema(table).names
        columns = [each for each in known if kinds is None or each in kinds]
        words = [each for each in columns if kinds and kinds[each] == "string"]
        found = pq.read_table(table, columns=columns, read_dictionary=words)
        return found.to_pandas(self_destruct=True, split_blocks=True), table, False
    except (OSError, pa.ArrowException) as error:
        raise BundleError(
            f"{table} is damaged: it cannot be read as Parquet ({error}). Run the study again."
        ) from error


def read_some(
    directory: Path, name: str, at: NDArray[np.intp], columns: Sequence[str]
) -> tuple[pd.DataFrame, Path]:
    """The rows of a Parquet table in these places, ascending, and its file.

    A part of the file is in memory at a time. Of `columns` those that it has. Raises BundleError.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, parts, begin = directory / f"{name}.parquet", [], 0
    try:
        with pq.ParquetFile(path) as file:
            known = [each for each in columns if each in file.schema_arrow.names]
            parts.append(file.schema_arrow.empty_table().select(known))
            for number in range(file.num_row_groups):
                end = begin + file.metadata.row_group(number).num_rows
                inside = at[(at >= begin) & (at < end)] - begin
                if inside.size:
                    parts.append(file.read_row_group(number, columns=known).take(inside))
                begin = end
        return pa.concat_tables(parts).to_pandas(), path
    except (OSError, pa.ArrowException) as error:
        raise BundleError(
            f"{path} is damaged: it cannot be read as Parquet ({error}). Run the study again."
        ) from error


def read_lines(path: Path) -> tuple[list[dict[str, Any]], bool]:
    """The objects of `path`, and whether a cut last line had to be left out.

    Raises BundleError for a file that cannot be read and for a broken line that is not the last.
    """
    rows: list[dict[str, Any]] = []
    lines = _bytes_of(path).split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                rows.append(_object(line))
        except (ValueError, RecursionError) as error:
            # Only the line that the writer was in the middle of may be broken: the one that no
            # newline ends. Anything else is damage, and a report must not paper over it.
            if number == len(lines):
                return rows, True
            raise BundleError(
                f"{path}, line {number}, is damaged ({error}). Only the last line of a killed "
                "run may be cut short; run the study again."
            ) from error
    return rows, False
