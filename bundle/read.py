"""Reading a bundle: every file is checked on the way in, and its errors name what is wrong.

A run that was killed leaves `NAME.jsonl`, and its last line may be cut short; a run that ended has
`NAME.parquet`. Where both exist the run died while converting, so the lines, which are removed
last, are the complete ones.
"""

from __future__ import annotations

import fcntl
import glob
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from pydantic import ValidationError

from wanlat.bundle import beneath
from wanlat.bundle.beneath import POINTS
from wanlat.bundle.documents import SCHEMA_VERSION, Document, Manifest, Point, Points
from wanlat.bundle.errors import BundleError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow.parquet as pq
    from numpy.typing import NDArray

D = TypeVar("D", bound=Document)
_MOST_MISTAKES = 5
ASIDE = ".attempt-"
"""Follows the name of a point where what an attempt left lies that was started again."""
_ENDS = (".jsonl", ".parquet")
MOST_TABLE_BYTES, MOST_VALUES = 8 << 30, 1 << 30
"""A larger table is refused: uncompressed bytes, words where each stands; rows times columns."""
_ROWS_AT_ONCE = 1024
_AGAIN = "The bundle cannot be trusted; run the study again."


def read_manifest(directory: Path) -> Manifest:
    """The manifest of the bundle in `directory`.

    Raises BundleError where there is none, or one of another schema, or a damaged one.
    """
    path, no_bundle = directory / "manifest.json", f"{directory} is not a bundle:"
    try:
        has_manifest = beneath.is_file(path)
    except OSError as error:  # no name of a file, or in a directory that may not be searched
        raise BundleError(f"{no_bundle} {error.strerror}.") from error
    if not has_manifest:
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
    return _checked(model, read_json(path), path) if beneath.is_file(path) else None


def complete_points(directory: Path) -> list[Point]:
    """The complete points of a matrix or of several drills; none of one run. Raises BundleError."""
    document = read_document(directory, Points)
    points = document.points if document else ()
    return [point for point in points if point.status == "complete"]


def bundles_below(place: Path) -> list[Path]:
    """All bundles below `place`, and itself, if it is one; in the order of their names.

    Not what attempts left that were started again: they would count as replicates.
    """
    directories = {path.parent for path in place.glob("**/manifest.json")}
    return sorted(path for path in directories if path == place or ASIDE not in path.name)


def attempts_before(directory: Path) -> list[Path]:
    """Return what earlier attempts at a point left beside its bundle, the newest first."""
    own = f"{directory.name}{ASIDE}"
    numbers = {
        int(path.name.removeprefix(own)): path
        for path in directory.parent.glob(f"{glob.escape(own)}*")
        if path.name.removeprefix(own).isdecimal()
    }
    return [numbers[number] for number in sorted(numbers, reverse=True)]


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in `path`; BundleError if it cannot be read or is something else."""
    try:
        return _object(_bytes_of(path))
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path} is damaged: it is not JSON ({error}). {_AGAIN}") from error


def _bytes_of(path: Path) -> bytes:
    try:
        with beneath.opened(path) as file:
            return file.read()
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
            f"{'.'.join(map(str, mistake['loc']))}: {mistake['msg']}"
            for mistake in error.errors(include_url=False, include_input=False)
        ]
        more = f" (and {n} more)" if (n := len(mistakes) - _MOST_MISTAKES) > 0 else ""
        text = "; ".join(mistakes[:_MOST_MISTAKES])
        raise BundleError(f"{path} is damaged: {text}{more}. {_AGAIN}") from error


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
    if beneath.is_file(lines):
        rows, is_cut = read_lines(lines)
        return pd.DataFrame.from_records(rows), lines, is_cut
    if not beneath.is_file(table):
        return None
    try:
        with beneath.opened(table) as file:
            known = pq.read_schema(file).names
        columns = [name for name in known if kinds is None or name in kinds]
        words = [name for name in columns if kinds and kinds[name] == "string"]
        with parquet_file(table, columns, words) as file:
            rows_read = pq.read_table(file, columns=columns, read_dictionary=words)
        return rows_read.to_pandas(self_destruct=True, split_blocks=True), table, False
    except (OSError, pa.ArrowException) as error:
        raise _not_parquet(table, error) from error


def has_table(directory: Path, name: str) -> bool:
    """Whether the run left a table, as lines or not."""
    return any(beneath.is_file(directory / f"{name}{end}") for end in _ENDS)


def read_records(directory: Path, name: str) -> tuple[list[dict[str, Any]], Path]:
    """The rows of a table that stays lines, and its file. Raises BundleError."""
    lines = directory / f"{name}.jsonl"
    return (read_lines(lines)[0] if beneath.is_file(lines) else []), lines


@contextmanager
def parquet_file(
    path: Path, columns: Sequence[str] | None = None, as_categories: Sequence[str] = ()
) -> Iterator[BinaryIO]:
    """Yield a table of a bundle, open, with `columns` (None: all) that fit into memory.

    A few bytes of Parquet may stand for any number of rows, and for a long word in each of them;
    but for `as_categories`. Raises BundleError for what is larger than a table of a run can be,
    and what pyarrow raises.
    """
    import pyarrow.parquet as pq

    with beneath.opened(path) as file:
        with pq.ParquetFile(file) as table:
            names = [n for n in table.schema_arrow.names if columns is None or n in columns]
            words = _refuse_larger(path, table, names, as_categories)
        if words:
            file.seek(0)
            _refuse_longer(path, file, words)
        file.seek(0)
        yield file


def _refuse_larger(
    path: Path, table: pq.ParquetFile, names: Sequence[str], as_categories: Sequence[str]
) -> list[str]:
    """Return the columns of words that may still be too large, as a word may be in many rows."""
    known = table.metadata
    groups = [known.row_group(number) for number in range(known.num_row_groups)]
    size_bytes = sum(group.total_byte_size for group in groups)
    if max(known.num_rows, sum(g.num_rows for g in groups)) * max(1, len(names)) > MOST_VALUES:
        raise _too_large(path, f"{MOST_VALUES:,} values")
    if size_bytes > MOST_TABLE_BYTES:
        raise _too_large(path, f"{MOST_TABLE_BYTES >> 30} GiB")
    if known.num_rows * size_bytes <= MOST_TABLE_BYTES:  # as if each row had all of it
        return []
    return [name for name in _words(table) if name in names and name not in as_categories]


def _refuse_longer(path: Path, file: BinaryIO, words: Sequence[str]) -> None:
    """Raise BundleError where the words of a table would not fit; each is in memory once."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    read_bytes = 0
    with pq.ParquetFile(file) as table:
        by_word = [
            name
            for name in words
            if not pa.types.is_nested(table.schema_arrow.field(name).type)
            and not _is_front_coded(table.metadata, name)
        ]
    file.seek(0)
    with pq.ParquetFile(file, read_dictionary=by_word) as table:
        for batch in table.iter_batches(_ROWS_AT_ONCE, columns=list(words)):
            for column in batch.columns:
                if pa.types.is_dictionary(column.type):
                    lengths = pc.binary_length(column.dictionary)
                    read_bytes += pc.sum(lengths.take(column.indices)).as_py() or 0
                else:
                    read_bytes += column.nbytes
            if read_bytes > MOST_TABLE_BYTES:
                raise _too_large(path, f"{MOST_TABLE_BYTES >> 30} GiB of words")


def _is_front_coded(known: pq.FileMetaData, name: str) -> bool:
    """Whether the values of a column are stored as what each adds to the one before.

    Arrow cannot read those as a dictionary, and does so plainly: none stands for many.
    """
    groups = (known.row_group(number) for number in range(known.num_row_groups))
    columns = (group.column(place) for group in groups for place in range(group.num_columns))
    return any(
        "DELTA" in encoding
        for column in columns
        if column.path_in_schema == name
        for encoding in column.encodings
    )


def _words(table: pq.ParquetFile) -> list[str]:
    """The columns with values of no fixed size."""
    import pyarrow as pa

    fixed = (pa.types.is_primitive, pa.types.is_null)
    return [
        column.name
        for column in table.schema_arrow
        if not any(is_fixed(column.type) for is_fixed in fixed)
    ]


def _too_large(path: Path, bound: str) -> BundleError:
    return BundleError(
        f"{path} is larger than a table of a run may be once it is decompressed ({bound}). It is "
        "not read."
    )


def is_being_written(directory: Path) -> bool:
    """Whether a run holds the lock of a bundle, or of the matrix that it is a point of.

    The kernel takes the lock away from a process that ends, however it does.
    """
    is_point = directory.parent.name == POINTS
    return any(map(_is_locked, [directory, *([directory.parent.parent] if is_point else [])]))


def _is_locked(directory: Path) -> bool:
    try:
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(opened)
    return False


def _not_parquet(path: Path, error: Exception) -> BundleError:
    return BundleError(
        f"{path} is damaged: it cannot be read as Parquet ({error}). Run the study again."
    )


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
        with parquet_file(path, columns) as opened, pq.ParquetFile(opened) as file:
            known = [name for name in columns if name in file.schema_arrow.names]
            parts.append(file.schema_arrow.empty_table().select(known))
            for number in range(file.num_row_groups):
                end = begin + file.metadata.row_group(number).num_rows
                inside = at[(at >= begin) & (at < end)] - begin
                if inside.size:
                    parts.append(file.read_row_group(number, columns=known).take(inside))
                begin = end
        return pa.concat_tables(parts).to_pandas(), path
    except (OSError, pa.ArrowException) as error:
        raise _not_parquet(path, error) from error


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
