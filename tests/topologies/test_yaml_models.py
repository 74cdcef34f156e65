"""Any model can be loaded with lines: studies and drills use the same loader as topologies."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, StrictInt, StrictStr, field_validator

from wanlat.topologies.findings import Finding, YamlError
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.yaml_lines import load_yaml_model
from wanlat.topologies.yaml_model import YamlModel


class Step(YamlModel):
    endpoint: Literal["get", "put", "list"]
    body: Size = Size(0)
    deadline: Duration | None = None

    def misfits(self) -> list[Finding]:
        wrong = self.endpoint == "put" and not self.body.bytes
        return [Finding(("endpoint",), "a put needs a `body`")] if wrong else []


class Study(YamlModel):
    name: StrictStr
    samples: Annotated[StrictInt, Field(gt=0, lt=1000)] = 100
    steps: tuple[Step, ...]
    warm_up: dict[str, StrictInt] = Field(default={})

    @field_validator("name")
    @classmethod
    def _short(cls, name: str) -> str:
        if len(name) > 10:
            raise ValueError("the name is longer than 10 letters")
        return name

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        steps = raw.get("steps")
        if not isinstance(steps, list | tuple) or len(steps) < 2 or steps[0] != steps[-1]:
            return []
        return [Finding(("steps", len(steps) - 1), "the same as the first", see=("steps", 0))]


class StudyError(YamlError):
    """The caller's own error."""


def mistakes(text: str, tmp_path: Path) -> list[str]:
    file = tmp_path / "study.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        load_yaml_model(file, Study, error=StudyError)
    return [str(mistake).removeprefix(f"{file}:") for mistake in caught.value.mistakes]


def test_what_is_wrong_with_values_stands_beside_what_is_wrong_between_them(tmp_path: Path) -> None:
    text = """\
name: a very long name
samples: 0
steps:
  - {endpoint: put}
  - {endpoint: put, bodi: 1}
  - {endpoint: gett, deadline: 30}
  - {endpoint: put}
warm_up:
  get: 1
  put: many
"""
    for found, expected in zip(
        mistakes(text, tmp_path),
        [
            "1: name: the name is longer than 10 letters",
            "2: samples: `0` is too small; more than 0",
            "4: steps[0].endpoint: a put needs a `body`",
            "5: steps[1].bodi: unknown key `bodi` (did you mean `body`?); allowed: endpoint, body,",
            "5: steps[1].endpoint: a put needs a `body`",
            "6: steps[2].endpoint: `gett` is not allowed here (did you mean `get`?)",
            "6: steps[2].deadline: `30` has no unit",
            "7: steps[3].endpoint: a put needs a `body`",
            "7: steps[3]: the same as the first (first in line 4)",
            "10: warm_up.put: a whole number is wanted here, not the text `many`",
        ],
        strict=True,
    ):
        assert found.startswith(expected)


def test_models_made_in_code_are_checked_alike() -> None:
    with pytest.raises(ValueError, match="endpoint: a put needs a `body`"):
        Step(endpoint="put")
    step = Step(endpoint="get")
    with pytest.raises(ValueError, match=r"steps\[1\]: the same as the first"):
        Study(name="s", steps=(step, step))
