"""`--set PARAMETER=VALUE` and `--matrix PARAMETER=V1,V2`: text into values."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from wanlat.cli import app
from wanlat.commands.settings import axes, settings
from wanlat.topologies.errors import UserError


def test_values_are_yaml() -> None:
    assert settings(["samples=3", "prefill.objects=10", "resources=false", "nodes=null"]) == {
        "samples": 3,
        "prefill.objects": 10,
        "resources": False,
        "nodes": None,
    }
    assert settings(["load={workers: 4}"]) == {"load": {"workers": 4}}
    assert settings(None) == {}


def test_values_of_an_axis_are_parted_by_commas() -> None:
    assert axes(["nodes=1, 2,4", "object_size=1KiB,50KiB"]) == {
        "nodes": [1, 2, 4],
        "object_size": ["1KiB", "50KiB"],
    }
    assert axes(["load.mix={GetObject: 1},{PutObject: 1}"]) == {
        "load.mix": [{"GetObject": 1}, {"PutObject": 1}]
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["samples"], "it is written PARAMETER=VALUE, such as `samples=20`"),
        (["=3"], "it is written PARAMETER=VALUE"),
        (["prefill..objects=3"], "it is written PARAMETER=VALUE"),
        (["samples=1", "samples=2"], "`samples` is given twice"),
        (["load={"], "not valid YAML"),
    ],
)
def test_a_mistake_says_what_is_right(given: list[str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        settings(given)


def test_an_axis_has_values() -> None:
    with pytest.raises(UserError, match="it has no values"):
        axes(["nodes="])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--resume", "nowhere"], "there is no bundle"),
        (["--resume", "nowhere", "--out", "b"], "leave --out out"),
        (["--resume", "nowhere", "--capture"], "leave --backend and --capture"),
        (["endpoint-latency", "--samples", "3", "--set", "samples=4"], "do one of them"),
        (["endpoint-latency", "--set", "nodes=2"], "fewer than topology"),
        (["endpoint-latency", "--matrix", "nodes=5,2"], "nodes-2 of the matrix: nodes: 2 is fewer"),
        (["endpoint-latency", "--matrix", "nods=1"], "did you mean `nodes`"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_starts(
    arguments: list[str], says: str
) -> None:
    result: Any = CliRunner().invoke(app, ["run", *arguments])
    assert isinstance(result.exception, UserError)
    assert says in str(result.exception)
