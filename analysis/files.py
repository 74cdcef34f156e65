"""Files that are replaced in one step, or not at all."""

from __future__ import annotations

from pathlib import Path

from wanlat.bundle import beneath
from wanlat.bundle.errors import unwritable

_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])
"""What a terminal that is shown a file may obey; without tabs and ends of lines."""


def replace_text(path: Path, text: str) -> None:
    """Replace `path` by `text` in one step, without control characters.

    Raises BundleError where it cannot be written.
    """
    try:
        with beneath.replacing(path) as file:
            plain = text.translate(_CONTROLS)
            file.write(plain.encode("utf-8", "replace"))  # half a surrogate pair
    except OSError as error:
        raise unwritable(path, error) from error
