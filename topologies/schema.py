"""The JSON schema of the topology file: `python -m wanlat.topologies.schema` writes it."""

import json
import sys
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from wanlat.topologies.model import Topology

SCHEMA_FILE = Path(__file__).with_name("schema.json")


class Untitled(GenerateJsonSchema):
    """Without a title a field: editors show the description, and the name is there already."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """Never."""
        return False


def schema() -> dict[str, Any]:
    """The schema: types, units, names and known keys. What holds between keys is not in it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Topology.model_json_schema(schema_generator=Untitled),
    }


def schema_text() -> str:
    """The schema as it stands in `topologies/schema.json`."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
    print(f"wrote {SCHEMA_FILE}", file=sys.stderr)
