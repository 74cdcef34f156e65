"""Bob's gRPC interface, for every system that serves it."""

from __future__ import annotations

from pathlib import Path

PROTO = Path(__file__).absolute().parents[1] / "proto" / "bob.proto"
"""Its definition, as wanlat has written it down."""
PING = "/bob_storage.BobApi/Ping"
PORT = 20000
"""The port in Bob's own examples."""
