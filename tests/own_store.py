"""The reference store as a system of somebody's own: its gRPC service is asked as its file says."""

from __future__ import annotations

from pathlib import Path

from wanlat.systems import registry
from wanlat.systems.base import System
from wanlat.systems.engine.protocols import BOB_PROTO

NAME = "own-store"
DEFINITION = f"""
schema: 1
name: {NAME}
extends: quorum
protocol: grpc
options: {{api: {{type: choice, of: [bob], default: bob}}}}
grpc: {{protos: [{BOB_PROTO}]}}
objects: {{write: Store, read: Fetch, delete: Drop, largest: 1MiB}}
endpoints:
  Store: &store
    method: bob_storage.BobApi/Put
    request:
      key: {{key: "{{key}}"}}
      data: {{data: "{{body}}", meta: {{timestamp: "{{now}}"}}}}
  Fetch:
    method: bob_storage.BobApi/Get
    request: {{key: {{key: "{{key}}"}}}}
    response_object: data
    prepare: *store
  Drop:
    method: bob_storage.BobApi/Delete
    request: {{key: {{key: "{{key}}"}}, meta: {{timestamp: "{{now}}"}}}}
    prepare: *store
"""


def adopted(directory: Path, text: str = DEFINITION) -> System:
    """Write a definition, and return its system, which is known while the test lasts."""
    (directory / "system.yaml").write_text(text)
    return registry.get(registry.adopt(f"{directory}/"))
