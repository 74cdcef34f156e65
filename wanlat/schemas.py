"""JSON Schemas of what wanlat reads and writes: `python -m wanlat.schemas docs/schemas`.

A file is NAME-VERSION.json. A version grows when what was valid is so no more, or means something
else; keys that are added change none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from wanlat.bundle.documents import SCHEMA_VERSION, Manifest
from wanlat.bundle.results import RESULTS_VERSION, Comparison, Report, Reports
from wanlat.experiments.config.study import Study
from wanlat.experiments.drill.model import Drill
from wanlat.systems.engine.definition import Definition
from wanlat.topologies.model import Topology

_PUBLISHED: dict[str, tuple[type[BaseModel], int]] = {
    "manifest": (Manifest, SCHEMA_VERSION),
    "report": (Report, RESULTS_VERSION),
    "reports": (Reports, RESULTS_VERSION),
    "comparison": (Comparison, RESULTS_VERSION),
    "topology": (Topology, 1),
    "study": (Study, 1),
    "drill": (Drill, 1),
    "system": (Definition, 1),
}


class Untitled(GenerateJsonSchema):
    """Without a title a field: editors show the description, and the name is there already."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """Never."""
        return False


def schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each schema with the name of its file."""
    for name, (model, version) in _PUBLISHED.items():
        own = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        own |= {"$id": f"urn:wanlat:{name}:{version}", "title": f"wanlat {name}, version {version}"}
        made = model.model_json_schema(schema_generator=Untitled)
        yield f"{name}-{version}.json", {**own, **{k: v for k, v in made.items() if k != "title"}}


def text_of(schema: dict[str, Any]) -> str:
    """A schema as it stands in its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    directory.mkdir(exist_ok=True)
    for file, schema in schemas():
        (directory / file).write_text(text_of(schema), encoding="utf-8")
        print(f"wrote {directory / file}", file=sys.stderr)
