"""What a run leaves on disk: its schema, and the only way to write and to read it.

`documents` has the JSON files, `tables` the columns of the Parquet files. A run appends to
`NAME.jsonl` while it lasts, and turns that into `NAME.parquet` at its end; so a run that was killed
can be read too.
"""

BIN_NS = 4_000_000
"""Width of a bin of time in `lateness.parquet`, as `wire` has it."""

REPLICATE = "replicate"
"""The parameter of a matrix by which its replicates are numbered, from 1 on."""
