"""Drills and files of claims: the names of the shipped ones, and their files."""

from __future__ import annotations

from pathlib import Path

from wanlat.experiments.config.files import Shipped
from wanlat.topologies.findings import YamlError


class DrillError(YamlError):
    """A drill that cannot be used. The message lists every mistake, with file and line."""


class ClaimsError(YamlError):
    """Claims that cannot be used. The message lists every mistake, with file and line."""


_SHIPPED = Shipped(Path(__file__).parent.parent / "drills", "drill", DrillError)
shipped, find = _SHIPPED.names, _SHIPPED.find
CLAIMS = Shipped(Path(__file__).parent.parent / "claims", "file of claims", ClaimsError)
