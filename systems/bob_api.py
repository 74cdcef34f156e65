"""Bob's gRPC interface, for every system that serves it."""

from __future__ import annotations

from wanlat.emulator.binaries import PACKAGE

PROTO = PACKAGE / "proto" / "bob.proto"
"""Its definition, as wanlat has written it down."""
PING = "/bob_storage.BobApi/Ping"
PORT = 20000
"""The port in Bob's own examples."""
