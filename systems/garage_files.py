"""The configuration file of a Garage node, and what an earlier start left beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from wanlat.systems.secrets import derive

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.systems.garage import GarageOptions

S3_PORT = 3900
RPC_PORT = 3901
ADMIN_PORT = 3903
REGION = "garage"
CONFIGURATION = "garage.toml"
ADMIN_TOKEN = derive("garage admin")
_RPC_SECRET = derive("garage rpc")
_PUBLIC_KEY = "meta/node_key.pub"


def identities(homes: Mapping[str, Path]) -> dict[str, str]:
    """Return the nodes' public keys, where an earlier start has left all of them; else none."""
    try:
        return {name: (home / _PUBLIC_KEY).read_bytes().hex() for name, home in homes.items()}
    except FileNotFoundError:
        return {}


def others(ids: Mapping[str, str], lab: Lab, name: str) -> list[str]:
    """Return whom a node dials: everybody else whose identity is known."""
    rest = (node for node in lab.nodes if node.name != name and node.name in ids)
    return [f"{ids[node.name]}@{node.address}:{RPC_PORT}" for node in rest]


def configuration(
    address: str,
    home: PurePosixPath,
    options: GarageOptions,
    copies: int,
    peers: Sequence[str] = (),
) -> str:
    """Return the configuration file of the node with this address, its data below ``home``.

    ``peers``, as ``id@address:port``, are whom it dials at its start.
    """
    top = {
        "metadata_dir": str(home / "meta"),
        "data_dir": str(home / "data"),
        "db_engine": options.db_engine,
        "metadata_fsync": options.metadata_fsync,
        "data_fsync": options.data_fsync,
        "replication_factor": copies,
        "consistency_mode": options.consistency_mode,
        "rpc_secret": _RPC_SECRET,
        "rpc_bind_addr": f"{address}:{RPC_PORT}",
        "rpc_public_addr": f"{address}:{RPC_PORT}",
        "bootstrap_peers": list(peers),
    }
    s3 = {"api_bind_addr": f"{address}:{S3_PORT}", "s3_region": REGION}
    admin = {"api_bind_addr": f"{address}:{ADMIN_PORT}", "admin_token": ADMIN_TOKEN}
    sections = [_toml(top), "[s3_api]", _toml(s3), "[admin]", _toml(admin)]
    return "\n".join(sections) + "\n"


def _toml(table: dict[str, Any]) -> str:
    # A JSON string, number, boolean or empty list is also one in TOML.
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items())
