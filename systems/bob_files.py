"""What a Bob node reads: the cluster, itself, how to log, who may do what.

Bob reads YAML, and JSON is YAML in which no name can pass for a number or a truth value.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from wanlat.systems.bob_api import PORT
from wanlat.systems.placement import Layout
from wanlat.topologies.units import Duration

HTTP_PORT = 8000
DISK = "disk"
"""The one disk that every node has: its name, and its directory below the node's home."""
ALIENS = "alien"
"""The directory on it of what a node keeps for others."""


@dataclass(frozen=True)
class Member:
    """A node of the cluster; ``home`` is its directory as the lab names it."""

    name: str
    address: str
    home: PurePosixPath


def files(
    members: Sequence[Member], me: Member, layout: Layout, operation_timeout: Duration
) -> dict[str, str]:
    """Return the files of one node, text by name."""
    documents = {
        "cluster.yaml": cluster(members, layout),
        "node.yaml": node(me, layout.quorum, operation_timeout),
        "logger.yaml": _LOGGER,
        "users.yaml": _USERS,
    }
    return {name: json.dumps(document, indent=2) + "\n" for name, document in documents.items()}


def cluster(members: Sequence[Member], layout: Layout) -> dict[str, Any]:
    """Return who is there and which vdisk is where; the same on every node."""
    return {
        "nodes": [
            {
                "name": each.name,
                "address": f"{each.address}:{PORT}",
                "disks": [{"name": DISK, "path": str(each.home / DISK)}],
            }
            for each in members
        ],
        "vdisks": [
            {"id": number, "replicas": [{"node": name, "disk": DISK} for name in replicas]}
            for number, replicas in enumerate(layout.vdisks)
        ],
    }


def node(me: Member, quorum: int, operation_timeout: Duration) -> dict[str, Any]:
    """Return how a node works. What is not said here is as in Bob's own example."""
    return {
        "name": me.name,
        "log_config": str(me.home / "logger.yaml"),
        "users_config": str(me.home / "users.yaml"),
        "quorum": quorum,
        "operation_timeout": f"{operation_timeout.ns}ns",
        "check_interval": "5000ms",
        "cluster_policy": "quorum",
        "backend_type": "pearl",
        "cleanup_interval": "1h",
        "authentication_type": "None",
        "http_api_address": me.address,
        "http_api_port": HTTP_PORT,
        "pearl": {
            "max_blob_size": "100 mb",
            "max_data_in_blob": 10000,
            "allow_duplicates": True,
            "blob_file_name_prefix": "bob",
            "fail_retry_timeout": "100ms",
            "alien_disk": DISK,
            # The default is one file in /tmp, which all nodes of a lab would share.
            "disks_events_logfile": str(me.home / "disk-events.csv"),
            "settings": {
                "root_dir_name": "bob",
                "alien_root_dir_name": ALIENS,
                # A day, as in its test mode, and not the example's hour: the first Put of each
                # period makes new files on every vdisk, and an hour is likely to end in a study.
                "timestamp_period": "1d",
                "create_pearl_wait_delay": "100ms",
            },
        },
        # Without this section it panics.
        "metrics": {"name": "bob", "graphite_enabled": False, "prometheus_enabled": False},
    }


# No line for each request: from level `debug` on it would log several.
_LOGGER: dict[str, Any] = {
    "appenders": {
        "stdout": {
            "kind": "console",
            "encoder": {"pattern": "{d(%Y-%m-%d %H:%M:%S%.3f)} {l} {M}:{L} {m}{n}"},
        }
    },
    "root": {"level": "warn", "appenders": ["stdout"]},
}

# Nobody has to say who he is here, but the file is asked for.
_USERS: dict[str, Any] = {
    "roles": {"all": {"read": True, "write": True, "read_rest": True, "write_rest": True}},
    "users": [{"username": "default", "role": "all"}],
}
