"""Where wanlat's files are: its package, and the programs built from its Rust crates."""

from __future__ import annotations

import os
from pathlib import Path

from wanlat.topologies.errors import MachineError

# In a checkout `wanlat/emulator` is a link: only the path that was imported leads to `wanlat`.
PACKAGE = Path(__file__).absolute().parents[1].resolve()
"""The directory of the package ``wanlat``: in a checkout, or where a wheel put it."""
SEARCH_PATH = PACKAGE.parent
"""What a Python that is to import ``wanlat`` has on its path."""


def binary(name: str) -> Path:
    """Return the path of a built program (``wire``, ``oneshot``, ``quorum``).

    A wheel brings them; a checkout has them in ``target/release``. ``WANLAT_BIN_DIR`` names another
    directory. Raises MachineError when it is not built.
    """
    if given := os.environ.get("WANLAT_BIN_DIR"):
        directory = Path(given)
    elif (PACKAGE / "bin").is_dir():
        directory = PACKAGE / "bin"
    else:
        directory = SEARCH_PATH / "target" / "release"
    path = directory / name
    if not os.access(path, os.X_OK):
        raise MachineError(
            f"The program `{name}` is not built: there is no executable {path}. "
            "Build it with `make build` in wanlat's checkout, or install wanlat's wheel."
        )
    return path
