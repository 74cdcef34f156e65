"""Any model can be loaded with lines: the studies use the same loader as the topologies."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, StrictInt, StrictStr, field_validator

from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.yaml_lines import YamlError, load_yaml_model
from wanlat.topologies.yaml_model import YamlModel


class Step(YamlModel):
    endpoint: Literal["get", "put", "list"]
    body: Size = Size(0)
    deadline: Duration | None = None

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        values = raw if isinstance(raw, dict) else {}
        if values.get("endpoint") == "put" and values.get("body") in (None, Size(0)):
            return [Finding(("endpoint",), "a put needs a `body`")]
        return []


class Study(YamlModel):
    name: StrictStr
    samples: Annotated[StrictInt, Field(gt=0, lt=1000)] | Literal["all"] = 100
    steps: tuple[Step, ...]
    warm_up: dict[str, StrictInt] = Field(default={})

    @field_validator("name")
    @classmethod
    def _short(cls, name: str) -> str:
        if len(name) > 10:
            raise ValueError("the name is longer than 10 letters")
        return name


def first_is_last(raw: Any) -> Iterator[Finding]:
    steps = raw.get("steps") if isinstance(raw, dict) else None
    if isinstance(steps, list) and len(steps) > 1 and steps[0] == steps[-1]:
        yield Finding(("steps", len(steps) - 1), "the same as the first", see=("steps", 0))


def told(text: str, tmp_path: Path, model: type[BaseModel] = Study) -> list[str]:
    file = tmp_path / "study.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(YamlError) as caught:
        load_yaml_model(file, model, first_is_last)
    assert isinstance(caught.value, UserError)
    return [str(mistake).removeprefix(f"{file}:") for mistake in caught.value.mistakes]


def test_a_right_file_is_a_model(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text("name: s\nsteps:\n  - {endpoint: put, body: 1KiB, deadline: 30s}\n")
    study = load_yaml_model(file, Study, first_is_last)
    assert study == Study(
        name="s", steps=(Step(endpoint="put", body=Size(1024), deadline=Duration(30 * 10**9)),)
    )
    assert study.to_dict()["steps"] == [{"endpoint": "put", "body": "1KiB", "deadline": "30s"}]


def test_the_checks_between_fields_run_on_wrong_types_too(tmp_path: Path) -> None:
    assert told(
        """\
name: s
samples: 0
steps:
  - {endpoint: put}
  - {endpoint: delete}
  - {endpoint: get, deadline: 30}
  - {endpoint: gett, bodi: 1}
  - {endpoint: put}
""",
        tmp_path,
    ) == [
        "2: samples: `0` is too small; more than 0",
        "2: samples: `0` is not allowed here; allowed: all",
        "4: steps[0].endpoint: a put needs a `body`",
        "5: steps[1].endpoint: `delete` is not allowed here; allowed: get, put or list",
        "6: steps[2].deadline: `30` has no unit; a duration is a number and a unit"
        " (ns, us, ms, s, min or h), such as `100ms` or `0.5ms`",
        "7: steps[3].endpoint: `gett` is not allowed here (did you mean `get`?);"
        " allowed: get, put or list",
        "7: steps[3].bodi: unknown key `bodi` (did you mean `body`?);"
        " allowed: endpoint, body, deadline",
        "8: steps[4].endpoint: a put needs a `body`",
        "8: steps[4]: the same as the first (first in line 4)",
    ]


def test_a_validator_of_the_model_speaks_for_itself(tmp_path: Path) -> None:
    assert told("name: a very long name\nsteps: []\n", tmp_path) == [
        "1: name: the name is longer than 10 letters"
    ]


def test_keys_of_free_mappings_are_followed(tmp_path: Path) -> None:
    assert told("name: s\nsteps: []\nwarm_up:\n  get: 1\n  put: many\n", tmp_path) == [
        "5: warm_up.put: a whole number is wanted here, not the text `many`"
    ]


def test_a_plain_pydantic_model_will_do(tmp_path: Path) -> None:
    class Plain(BaseModel):
        count: float

    assert told("count: many\n", tmp_path, Plain) == [
        "1: count: a number is wanted here, not the text `many`"
    ]


def test_the_error_type_is_the_callers(tmp_path: Path) -> None:
    class StudyError(YamlError):
        pass

    with pytest.raises(StudyError, match="there is no such file"):
        load_yaml_model(tmp_path / "none.yaml", Study, error=StudyError)


def test_models_made_in_code_are_checked_alike() -> None:
    with pytest.raises(ValueError, match="endpoint: a put needs a `body`"):
        Step(endpoint="put")
