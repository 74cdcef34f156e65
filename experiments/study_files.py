"""Names of shipped studies: looked up, and mistyped ones answered, before a study is read."""

from __future__ import annotations

from pathlib import Path

from wanlat.experiments.shipped import Shipped
from wanlat.topologies.yaml_errors import YamlError


class StudyError(YamlError):
    """A study that cannot be used. The message lists every mistake, with file and line."""


_SHIPPED = Shipped(Path(__file__).parent, "study", StudyError)
shipped, find = _SHIPPED.names, _SHIPPED.find
