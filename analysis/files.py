"""Writing a file that nobody reads half of."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from wanlat.bundle.errors import BundleError


def replace_text(path: Path, text: str) -> None:
    """Replace `path` by `text` in one step. Raises BundleError where it cannot be written."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise BundleError(
            f"{path} cannot be written: {error.strerror or error}. Make its directory writable, or "
            "copy the bundle to where you may write."
        ) from error
