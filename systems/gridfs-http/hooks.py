"""What YAML cannot express of GridFS over HTTP: where its program is, for what extends it too."""

from __future__ import annotations

from pathlib import Path


def app_directory() -> str:
    """Return the directory of app.py."""
    return str(Path(__file__).parent.absolute())
