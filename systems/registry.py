"""The stores that wanlat knows. A new one is a module, and a line here."""

from __future__ import annotations

from typing import Any

from wanlat.systems.base import System
from wanlat.systems.bob import Bob
from wanlat.systems.garage import Garage
from wanlat.systems.minio import Minio
from wanlat.systems.minio_nginx import MinioNginx
from wanlat.systems.quorum import Quorum
from wanlat.systems.service import Service
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import did_you_mean, listing, show

_KNOWN: tuple[System[Any], ...] = (Quorum(), Garage(), Minio(), MinioNginx(), Bob(), Service())

SYSTEMS: dict[str, System[Any]] = {system.name: system for system in _KNOWN}


MESSAGES = {name: system.messages for name, system in SYSTEMS.items() if system.messages}
"""What labels the messages of a system's nodes in traces."""


def names() -> list[str]:
    """Return the names of all systems."""
    return list(SYSTEMS)


def get(name: str) -> System[Any]:
    """Return a system by name. UserError names those that exist."""
    try:
        return SYSTEMS[name]
    except KeyError:
        raise UserError(
            f"There is no system {show(name)}{did_you_mean(name, names())}. "
            f"wanlat knows {listing(names())}."
        ) from None
