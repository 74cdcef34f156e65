"""The tables of a bundle: their columns, and what becomes of their lines.

Instants and durations are in nanoseconds (CLOCK_MONOTONIC), sizes in bytes; what is not known is
null. docs/bundle.md says what each column means.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.json as pj

_TYPES = {
    "string": pa.string(),
    "int64": pa.int64(),
    "int32": pa.int32(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
}


def _schema(columns: str) -> pa.Schema:
    pairs = [column.split(":") for column in columns.split()]
    return pa.schema([(name, _TYPES[kind]) for name, kind in pairs])


SAMPLES = _schema("""
    system:string version:string topology:string client:string endpoint:string seq:int64
    start_ns:int64 connect_ns:int64 first_byte_ns:int64 total_ns:int64 outcome:string
    error:string object_bytes:int64 rtt_ms:float64 phase:string retransmits:int64 status:int64
    new_connection:bool sent_ns:int64 elapsed_ns:int64 longest_gap_ns:int64 reads:int64
    acks_sent:int64 out_of_order:int64 rtt_us:int64 placement:string grpc_status:int64
    verify_ns:int64 make_ns:int64 due_ns:int64 drill_client:string target:string operation:string
    key:string rtt_step:int64 network_error_ns:int64 late:bool
""")
"""One row a request."""

LATENESS = _schema("""
    start_ns:int64 from:string to:string n:int64 max_ns:int64 sum_ns:int64
""")
"""One row a bin of time (`bundle.lateness`) and direction of a link in which packets left late."""

EVENTS = _schema("""
    t_ns:int64 kind:string subject:string detail:string
""")
"""Faults and lifecycle."""

RESOURCES = _schema("""
    t_ns:int64 system:string kind:string subject:string rss_bytes:int64 cpu_ns:int64
    threads:int64 open_files:int64 read_bytes:int64 written_bytes:int64 space_bytes:int64
    files:int64 trash_bytes:int64 space_began_ns:int64 rx_bytes:int64 tx_bytes:int64
    rx_packets:int64 tx_packets:int64
""")
"""One row a sample of a node's resource usage."""

LOAD = _schema("""
    system:string version:string start_ns:int64 due_ns:int64 first_byte_ns:int64 total_ns:int64
    elapsed_ns:int64 worker:int32 endpoint:string bucket:int32 object:int64 object_bytes:int64
    verify_ns:int64 outcome:string status:int32 grpc_status:int32 error:string phase:string
    new_connection:bool network_error_ns:int64 late:bool
""")
"""One row a request of a load."""


def of_lines(lines: bytes, schema: pa.Schema) -> pa.Table:
    """Return rows of JSON as a table; keys that the schema lacks are left out, others are null.

    Not through Python's lists: to convert those pyarrow imports pandas, half a second in which a
    run that was cut short would not end.
    """
    if not lines:
        return pa.Table.from_batches([], schema=schema)
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    table = pj.read_json(pa.BufferReader(lines), parse_options=options)
    return table.select(schema.names)
