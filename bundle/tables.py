"""The tables of a bundle: their columns, and what becomes of their lines.

Instants and durations are in nanoseconds (CLOCK_MONOTONIC), sizes in bytes; what is not known is
null. The fields' metadata has the meaning of each column.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.json as pj

_TYPES = {
    "string": pa.string(),
    "int64": pa.int64(),
    "int32": pa.int32(),
    "int16": pa.int16(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
}


def schema_of(columns: str) -> pa.Schema:
    """Return the schema of columns, a line each: name, type, and what it means."""
    lines = [line.split(maxsplit=2) for line in columns.strip().splitlines()]
    return pa.schema(
        [pa.field(name, _TYPES[kind], metadata={"meaning": text}) for name, kind, text in lines]
    )


SAMPLES = schema_of("""
    system            string   the system under test
    version           string   its version
    topology          string   name of the topology
    client            string   the node where the client runs
    endpoint          string   what was requested
    seq               int64    position in the plan; beyond it: resampled
    start_ns          int64    instant just before the request is written, or the connection made
    connect_ns        int64    from start: connected; 0: the connection was kept
    first_byte_ns     int64    from start: first byte of the answer; null: not reached
    total_ns          int64    from start: last byte of the answer; null: not reached
    outcome           string   `ok` acknowledged, `fail` not executed, `unknown`, `not_sent`
    error             string   why it is not ok; `expired …`: it waited until too late
    object_bytes      int64    of the body that was sent or came back
    rtt_ms            float64  requested RTT, target's site to others (median), or the step's
    phase             string   `warmup`, `measure`; `idle`, `loaded`; `before`, `during`, `after`
    retransmits       int64    segments that the client's kernel sent again (TCP_INFO)
    status            int64    HTTP status
    new_connection    bool     a connection was made for this request
    sent_ns           int64    from start: last byte handed to the kernel
    elapsed_ns        int64    from start: when the clock stopped, whatever the outcome
    longest_gap_ns    int64    longest gap between reads of the answer; 40 ms: a delayed ACK
    reads             int64    how many reads the answer took
    acks_sent         int64    by the client's kernel (TCP_INFO)
    out_of_order      int64    segments that came out of order (TCP_INFO)
    rtt_us            int64    smoothed RTT of the client's connection, us (TCP_INFO)
    placement         string   `local`: the target holds a replica; `remote`: not; `unknown`
    grpc_status       int64    gRPC's status code; null: the answer had none
    verify_ns         int64    for comparing the body, probe's own; above 8 MiB in total_ns
    make_ns           int64    for making the body while the clock ran, probe's own
    due_ns            int64    instant at which the request was due; null: it was not scheduled
    drill_client      string   drills: name of the client
    target            string   drills: the node that the request went to
    operation         string   drills: `read`, `write` or `list`
    key               string   drills: of the object
    rtt_step          int64    number of the RTT step; of an envelope: of the tested network
    network_error_ns  int64    greatest lateness of the network meanwhile; null: not known
    late              bool     the network was later than allowed in the request's first round trip
    held_up_ns        int64    most by which a network later than allowed can have lengthened it
""")
"""One row a request."""

LATENESS = schema_of("""
    start_ns  int64   begin of a bin of 4 ms; bins in which nothing was 0.25 ms late are left out
    from      string  site, or node, that sends; null: the sentinel, which only wakes up
    to        string  site, or node, that receives; null: the sentinel
    n         int64   frames, or wakes
    max_ns    int64   greatest lateness of them
    sum_ns    int64   sum of their latenesses
""")
"""One row a bin of time (`bundle.lateness`) and direction of a link in which packets left late."""

EVENTS = schema_of("""
    t_ns     int64   when
    kind     string  such as `ready`, `impairment`, `rtt step`, `inject`, `heal`, `died`
    subject  string  the system, node, link or fault
    detail   string  in words, or JSON: of an impairment what was in force before and after
""")
"""Faults and lifecycle."""

RESOURCES = schema_of("""
    t_ns            int64   when
    system          string  the system under test
    kind            string  `node`; `front`: what stands before the cluster; `link`: a direction
    subject         string  name of the node, or of the link's direction
    rss_bytes       int64   resident memory of all its processes, shared pages in each
    cpu_ns          int64   CPU time so far, user and system; goes on over a restart
    threads         int64   of all its processes
    open_files      int64   of all its processes
    read_bytes      int64   from disks so far, by its processes
    written_bytes   int64   to disks so far, by its processes
    space_bytes     int64   of its directory, in blocks; null: no scan ended in this sample
    files           int64   in its directory
    trash_bytes     int64   of the space: what lies in MinIO's trash
    space_began_ns  int64   when the scan of the directory began; what was written since may lack
    rx_bytes        int64   received so far on the node's interface, with headers
    tx_bytes        int64   sent so far; of a link what was sent into it
    rx_packets      int64   as the kernel hands them on, up to 64 KiB each
    tx_packets      int64   likewise
""")
"""One row a sample of a node's resource usage."""

LOAD = schema_of("""
    system            string  the system under test
    version           string  its version
    start_ns          int64   instant at which the request was sent
    due_ns            int64   instant at which it was due; null: without a `rate`
    first_byte_ns     int64   from start; null: not reached
    total_ns          int64   from start; null: not reached
    elapsed_ns        int64   from start: when the clock stopped, whatever the outcome
    worker            int32   0, 1, 2, …
    endpoint          string  what was requested
    bucket            int32   which bucket, from 0
    object            int64   which object of it, from 0
    object_bytes      int64   of the body, moved either way
    verify_ns         int64   for comparing the body
    outcome           string  as of samples
    status            int32   HTTP status
    grpc_status       int32   gRPC's status code
    error             string  its kind: what a server adds in its own words is cut off
    phase             string  `ramp` or `load`
    new_connection    bool    a connection was made for this request
    network_error_ns  int64   as of samples
    late              bool    as of samples, in its first 20 ms; such requests are in all figures
    held_up_ns        int64   as of samples
""")
"""One row a request of a load."""


def compact(schema: pa.Schema) -> dict[str, Any]:
    """Return how a table is written: arguments of `ParquetWriter`, for half the bytes.

    Instants and durations follow each other: of them, differences are stored.
    """
    numbers = [field.name for field in schema if pa.types.is_int64(field.type)]
    return {
        "compression": "zstd",
        "use_dictionary": [name for name in schema.names if name not in numbers],
        "column_encoding": dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
    }


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
