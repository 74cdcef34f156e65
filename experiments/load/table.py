"""``load.parquet``: what the generators' records become, a system at a time.

A record is 72 bytes, and there may be millions: what is here holds some of them in memory at once,
not all. A generator's own file stays until its rows are in the table, and where there is no room
for that, it stays.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wanlat.bundle import tables
from wanlat.bundle.write import is_full
from wanlat.probes.load_records import RecordsFile, records_table

TABLE = "load.parquet"


def raw_path(bundle: Path, system: str) -> Path:
    """Return where the generator of a system's load writes its records."""
    return bundle / f"load-{system}.raw"


def add_rows(bundle: Path, system: str, version: str) -> None:
    """Put a system's records into the table, in one step; then their own file is gone.

    Rows that an earlier attempt left of the same system go. On a full disk all stays as it is.
    """
    raw = raw_path(bundle, system)
    constant = {"system": system, "version": version}

    def rows() -> Iterator[pa.Table]:
        yield from _rows_of(bundle, lambda name: name != system)
        records = RecordsFile(raw)
        yield from (records_table(piece, constant) for piece in records.pieces())

    if _write(bundle, rows()):
        raw.unlink()


def keep_rows(bundle: Path, wanted: Callable[[str], bool]) -> None:
    """Leave in the table, and of generators' own files, what is of the systems that are wanted."""
    for raw in bundle.glob("load-*.raw"):
        if not wanted(raw.stem.removeprefix("load-")):
            raw.unlink()
    if (bundle / TABLE).exists():
        _write(bundle, _rows_of(bundle, wanted))


def _rows_of(bundle: Path, wanted: Callable[[str], bool]) -> Iterator[pa.Table]:
    if not (bundle / TABLE).exists():
        return
    with pq.ParquetFile(bundle / TABLE) as table:
        for batch in table.iter_batches():
            rows = pa.Table.from_batches([batch])
            known = [name for name in pc.unique(rows["system"]).to_pylist() if wanted(name)]
            yield rows.filter(pc.is_in(rows["system"], pa.array(known, pa.string())))


def _write(bundle: Path, rows: Iterator[pa.Table]) -> bool:
    """Write the table anew; False where there is no room for it."""
    partial = bundle / f".{TABLE}.partial"
    try:
        with pq.ParquetWriter(partial, tables.LOAD) as writer:
            for each in rows:
                if each.num_rows:
                    writer.write_table(each)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if not (isinstance(error, OSError) and is_full(error)):
            raise
        return False
    os.replace(partial, bundle / TABLE)
    return True
