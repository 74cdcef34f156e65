"""The receipt of an installed binary: what it is, how it was made, and its hash."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

_NAME = "receipt.json"


@dataclass(frozen=True)
class Receipt:
    """Written beside every binary that was built here."""

    name: str
    version: str
    binary: str  # path relative to the receipt
    sha256: str
    bytes: int
    built: str  # ISO 8601, UTC
    seconds: float  # of building, of the last attempt when it was interrupted before
    source: str
    command: list[str]
    toolchain: list[str]  # what each tool says of its version

    def write(self, directory: Path) -> None:
        """Write it into a directory."""
        text = json.dumps({"format": 1, **asdict(self)}, indent=2)
        (directory / _NAME).write_text(text + "\n", encoding="utf-8")


def read(directory: Path) -> Receipt | None:
    """Return the receipt in a directory; None when there is none that can be read."""
    try:
        found = json.loads((directory / _NAME).read_text(encoding="utf-8"))
        if found.pop("format") != 1:
            return None
        return Receipt(**found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hex digits. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
