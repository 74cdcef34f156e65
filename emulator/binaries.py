"""Where the programs built from this checkout's Rust crates are."""

from __future__ import annotations

import os
from pathlib import Path

from topologies.errors import MachineError

CHECKOUT = Path(__file__).resolve().parent.parent


def binary(name: str) -> Path:
    """Return the path of a built program (``wire``, ``oneshot``, ``quorum``).

    ``WANLAT_BIN_DIR`` names another directory. Raises MachineError when it is not built.
    """
    directory = Path(os.environ.get("WANLAT_BIN_DIR") or CHECKOUT / "target" / "release")
    path = directory / name
    if not os.access(path, os.X_OK):
        raise MachineError(
            f"The program `{name}` is not built: there is no executable {path}. "
            f"Build it with `make build` in {CHECKOUT}."
        )
    return path
