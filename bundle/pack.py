"""Bundles made small: tables and documents of all points of a matrix in a file, instants rounded.

The network of a drill or an envelope is late by milliseconds and its clients by tenths of them, so
what is finer than 0.1 ms says nothing of a store. `NAME_ns` is `NAME_100us` there, a whole number
of them; the rest is as in every bundle, and for any reader of Parquet. Of a load, and of the probe
client beside it, how long requests took is kept to 10 µs: some take hundreds of them. Of studies
whose requests are alone latencies are kept as they are; when a request was under way, what the
probe did meanwhile, and CPU time, to 0.1 ms.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wanlat.bundle import tables
from wanlat.bundle.beneath import POINTS
from wanlat.bundle.documents import DECIDING, Envelopes
from wanlat.bundle.read import (
    COARSE,
    COARSE_NS,
    DOCUMENTS,
    KEY_NUMBER,
    POINT,
    is_there,
    read_json,
    read_records,
)

_SAMPLES = (
    *("system", "version", "topology", "client", "endpoint", "seq", "start_ns", "elapsed_ns"),
    *("outcome", "error", "phase", "status", "grpc_status", "due_ns", "drill_client", "target"),
    *("operation", "key", "late"),
)
_STEP = "rtt_step"
"""Of an envelope: the number of the tested network."""
_LEDGER = ("state", "id", "op", "key", "name", "client", "target", "error")
"""In order of time; the instants are those of the requests. `name`: the key itself, of a system
that places objects by it."""
_OF_DRILLS = ("name", "client")
"""Of an envelope, whose users and keys are all of one kind, they tell nothing."""
_VERIFICATION = ("round", "nodes", "keys", "node", "key", "found", "error", "late")
_WITH_LEDGER: dict[str, Sequence[str]] = {
    "samples": _SAMPLES,
    "events": ("t_ns", "kind", "subject", "detail"),
    "ledger": _LEDGER,
    "verification": _VERIFICATION,
}
_ALONE = ("samples", "resources", "events")
_EXACT = (
    *("connect_ns", "first_byte_ns", "total_ns", "network_error_ns"),
    *("t_ns", "space_began_ns"),
)
"""Where requests are alone these are kept as they are."""
_ORDER = {
    "samples": ("drill_client", "operation", "due_ns"),
    "verification": ("round", "node", "key"),
}
"""What is alike stands together; elsewhere the order says something."""
_OF_PREPARING = 100
"""What is written before a drill, of which nothing but the order matters, is kept to 10 ms."""
_ROWS = 2**12
"""As many as these at least stand together, and are read at once for one point."""

_LOAD = (
    *("system", "version", "start_ns", "due_ns", "elapsed_ns", "endpoint", "object_bytes"),
    *("outcome", "status", "grpc_status", "error", "phase", "late"),
)
_PROBE_LEFT_OUT = ("sent_ns", "rtt_us", "longest_gap_ns", "reads", "acks_sent", "out_of_order")
_DURATIONS = ("connect_ns", "first_byte_ns", "total_ns", "elapsed_ns", "verify_ns", "make_ns")
_DURATION_NS = 10_000


def shrink_load(path: Path) -> None:
    """Round the instants of a load.parquet, and leave out what no figure is made of.

    So too of the probe client's samples.parquet that lies beside it.
    """
    table = pq.read_table(path)
    _write(_rounded_to(table.select([name for name in _LOAD if name in table.column_names])), path)
    if (samples := path.with_name("samples.parquet")).is_file():
        table = pq.read_table(samples)
        left_out = [name for name in _PROBE_LEFT_OUT if name in table.column_names]
        _write(_rounded_to(table.drop_columns(left_out), is_named=False), samples)


def _rounded_to(table: pa.Table, is_named: bool = True) -> pa.Table:
    """In order of time; instants are whole units, `is_named`: and called so."""
    return _in_units(table.sort_by("start_ns"), fine=_DURATIONS, is_named=is_named)


def _in_units(
    table: pa.Table,
    *,
    exact: Sequence[str] = (),
    fine: Sequence[str] = (),
    is_named: bool = True,
) -> pa.Table:
    """A table whose nanoseconds are rounded, but for `exact` ones; those of `fine` to 10 µs."""
    columns = {}
    for name in table.column_names:
        if name in fine:
            columns[name] = pc.multiply(_rounded(table[name], _DURATION_NS), _DURATION_NS)
        elif not name.endswith("_ns") or name in exact:
            columns[name] = table[name]
        elif is_named:
            columns[name.removesuffix("_ns") + COARSE] = _rounded(table[name], COARSE_NS)
        else:
            columns[name] = pc.multiply(_rounded(table[name], COARSE_NS), COARSE_NS)
    return pa.table(columns)


def _write(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, **_compact(table.schema, _DURATIONS))


def _rounded(ns: pa.ChunkedArray, unit: int) -> pa.ChunkedArray:
    number = pc.divide(pc.cast(ns, pa.float64()), float(unit))
    return pc.cast(pc.round(number), pa.int64())


def pack(matrix: Path) -> None:
    """Put the tables of all points into one file each, and remove those of the points.

    Of drills and envelopes what figures are made of, rounded. Raises BundleError for a damaged one.
    """
    are_drills = read_json(matrix / "manifest.json").get("kind") == "drills"
    points = sorted(each for each in (matrix / POINTS).iterdir() if each.is_dir())
    has_steps = any(is_there(point / Envelopes.FILE) for point in points)
    is_coarse = are_drills or has_steps
    numbers = {point: _numbers(point) for point in points} if is_coarse else {}
    rounded = _DURATIONS if any((point / "load.parquet").is_file() for point in points) else ()
    placed = {point for point in numbers if _places_by_key(point)}
    coarse = partial(_coarse_tables, numbers=numbers, placed=placed, has_steps=has_steps)
    of_points = coarse if is_coarse else partial(_whole_tables, are_alone=not rounded)
    for name in _WITH_LEDGER if is_coarse else _ALONE:
        if not (found := _numbered(list(of_points(points, name)))):
            continue
        schemas = [each.schema for each in found]
        schema = _typed(pa.unify_schemas(schemas, promote_options="permissive"), name)
        path = matrix / f"{name}.parquet"
        with pq.ParquetWriter(path, schema, **_compact(schema, rounded)) as writer:
            for several in _in_groups([_cast(each, schema) for each in found]):
                writer.write_table(several)
        for point in points:
            for file in (point / f"{name}.parquet", point / f"{name}.jsonl"):
                file.unlink(missing_ok=True)
    _pack_documents(matrix, points)


def _pack_documents(matrix: Path, points: Sequence[Path]) -> None:
    """Likewise the JSON documents of all points; what is left of a point are its charts."""
    files = [file for point in points for file in sorted(point.glob("*.json"))]
    if not files:
        return
    rows = [
        {POINT: file.parent.name, "name": file.name, "text": file.read_text("utf-8")}
        for file in files
    ]
    # What differs between points is little, and stands together.
    table = pa.Table.from_pylist(sorted(rows, key=lambda row: (row["name"], row[POINT])))
    how = {"compression": "zstd", "compression_level": 19, "use_dictionary": [POINT, "name"]}
    pq.write_table(table, matrix / DOCUMENTS, **how)
    for file in files:
        file.unlink()
    for directory in (*points, matrix / POINTS):
        if not any(directory.iterdir()):
            directory.rmdir()


def _typed(schema: pa.Schema, name: str) -> pa.Schema:
    """What is null in every row has the type of its table's column all the same."""
    known = getattr(tables, name.upper(), pa.schema([]))
    return pa.schema(
        known.field(each.name).remove_metadata()
        if pa.types.is_null(each.type) and each.name in known.names
        else each
        for each in schema
    )


def _in_groups(found: Sequence[pa.Table]) -> Iterator[pa.Table]:
    """Yield tables together that are small: each becomes a group of rows, which costs bytes."""
    waiting: list[pa.Table] = []
    for number, each in enumerate(found, start=1):
        waiting.append(each)
        if sum(one.num_rows for one in waiting) >= _ROWS or number == len(found):
            yield pa.concat_tables(waiting)
            waiting = []


def _whole_tables(points: Sequence[Path], name: str, *, are_alone: bool) -> Iterator[pa.Table]:
    for point in points:
        if (file := point / f"{name}.parquet").is_file():
            found = pq.read_table(file).replace_schema_metadata()
            found = _alone(found) if are_alone else found
            yield found.add_column(0, POINT, pa.array([point.name] * found.num_rows))


def _alone(table: pa.Table) -> pa.Table:
    """Of requests that are alone. `first_byte_ns` is left out where it is `total_ns`."""
    table = _in_units(table, exact=_EXACT)
    if not {"first_byte_ns", "total_ns"} <= {*table.column_names}:
        return table
    first = table["first_byte_ns"]
    is_both = pc.fill_null(pc.equal(first, table["total_ns"]), False)
    rest = pc.if_else(is_both, pa.scalar(None, pa.int64()), first)
    return table.set_column(table.column_names.index("first_byte_ns"), "first_byte_ns", rest)


def _coarse_tables(
    points: Sequence[Path],
    name: str,
    *,
    numbers: Mapping[Path, Mapping[str, str]],
    placed: Container[Path],
    has_steps: bool,
) -> Iterator[pa.Table]:
    """Keys become the `numbers` of their points' writes; a drill's ledger has both if `placed`.

    Of an envelope, which `has_steps`, two things are left out: which key a read was of, and
    requests that no verdict rests on, but for those that failed.
    """
    is_thinned = has_steps and name == "samples"
    left_out = _OF_DRILLS if has_steps and name == "ledger" else ()
    kept = [each for each in _WITH_LEDGER[name] if each not in left_out]
    kept += [_STEP] if is_thinned else []
    for point in points:
        rows, of_key = _rows(point, name), numbers[point]
        if is_thinned:
            rows = [r for r in rows if r["phase"] in DECIDING or r["outcome"] != "ok"]
        for row in rows:
            if key := row.get("key"):
                is_read = is_thinned and row["operation"] == "read"
                row["name"] = key if point in placed else None
                row["key"] = None if is_read else of_key.get(key, key)
        if order := _ORDER.get(name):
            rows.sort(key=lambda row: [(row.get(key) is not None, row.get(key)) for key in order])
        yield pa.Table.from_pylist([{POINT: point.name, **_coarse(row, kept)} for row in rows])


def _numbered(found: list[pa.Table]) -> list[pa.Table]:
    """Tables that have numbers for keys, if each of them is that of a write."""
    if not found or "key" not in found[0].column_names:
        return found
    keys = [pc.cast(each["key"], pa.string()) for each in found]
    are_numbers = [pc.all(pc.match_substring_regex(each, r"^\d{6}$")).as_py() for each in keys]
    if False in are_numbers:
        return found
    place = found[0].column_names.index("key")
    return [
        table.set_column(place, KEY_NUMBER, pc.cast(each, pa.int64()))
        for table, each in zip(found, keys, strict=True)
    ]


def _numbers(point: Path) -> dict[str, str]:
    """The number on the ledger of each key's first write, which takes less than its name."""
    ledger = _rows(point, "ledger")
    return {row["key"]: f"{row['id']:06}" for row in reversed(ledger) if row.get("key")}


def _places_by_key(point: Path) -> bool:
    """Whether its system says which nodes have the object of a key."""
    return any(row.get("placement") in ("local", "remote") for row in _rows(point, "samples"))


def _rows(point: Path, name: str) -> list[dict[str, Any]]:
    table = point / f"{name}.parquet"
    return pq.read_table(table).to_pylist() if table.is_file() else read_records(point, name)[0]


def _coarse(row: dict[str, Any], kept: Sequence[str]) -> dict[str, Any]:
    found = {key: row.get(key) for key in kept}
    unit = _OF_PREPARING if row.get("phase") == "prepare" else 1
    for key in [key for key in kept if key.endswith("_ns")]:
        value = found.pop(key)
        found[key.removesuffix("_ns") + COARSE] = value and unit * round(value / COARSE_NS / unit)
    return found


def _compact(schema: pa.Schema, rounded: Sequence[str]) -> dict[str, Any]:
    """How tables are written; of `rounded` columns there are few values, each many times."""
    numbers = [each.name for each in schema if pa.types.is_int64(each.type)]
    ways = {name: "DELTA_BINARY_PACKED" for name in numbers if name not in rounded}
    ways |= {each.name: "DELTA_BYTE_ARRAY" for each in schema if each.name == "key"}
    others = [name for name in schema.names if name not in ways]
    return {
        "compression": "zstd",
        "compression_level": 19,
        "use_dictionary": others,
        "column_encoding": ways,
    }


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    nothing = pa.nulls(table.num_rows)
    columns = [
        (table[each.name] if each.name in table.column_names else nothing).cast(each.type)
        for each in schema
    ]
    return pa.table(columns, schema=schema)
