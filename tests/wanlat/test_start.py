"""The start: what it imports, that its list of commands is true, and Ctrl-C in the midst of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from tests.command_line import ran
from wanlat import cli, start

HEAVY = ("matplotlib", "numpy", "pandas", "pyarrow", "scipy", "seaborn", "yaml")
ROOMS = tuple(f"wanlat.{room}" for room in ("analysis", "emulator", "probes", "systems"))
MODELS = (
    "wanlat.experiments.config.study",
    "wanlat.topologies.model",
    "wanlat.topologies.yaml_model",
)


def imported(code: str, arguments: Sequence[str] = ()) -> tuple[int, set[str], str]:
    """Run code in a Python of its own; return its exit code, all modules, and standard error."""
    program = (
        "import json, sys\n"
        f"try:\n    {code}\n"
        "finally:\n    print(); print(json.dumps(list(sys.modules)))\n"
    )
    done = ran(sys.executable, "-c", program, *arguments)
    return done.returncode, set(json.loads(done.stdout.splitlines()[-1])), done.stderr


def within(modules: set[str], packages: Sequence[str]) -> set[str]:
    """Return those of the modules that are, or lie in, these packages."""
    return {each for each in modules if any(f"{each}.".startswith(f"{name}.") for name in packages)}


def test_the_list_of_commands_needs_none_of_them() -> None:
    _, modules, _ = imported("from wanlat.start import main; main()", ["-h"])
    assert "wanlat.cli" in modules
    assert not within(modules, [*HEAVY, "pydantic", *ROOMS])
    assert not within(modules, ["wanlat.commands", "wanlat.experiments"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run endpoint-latensy", "did you mean `endpoint-latency`"),
        ("calibrate fife-sites", "did you mean `five-sites`"),
    ],
)
def test_a_mistyped_name_is_answered_before_anything_heavy_is_imported(
    arguments: str, says: str
) -> None:
    code, modules, said = imported("from wanlat.start import main; main()", arguments.split())
    assert code == 2
    assert says in said
    # Not pydantic itself, with which Typer converts arguments; what takes time is our models.
    assert not within(modules, [*HEAVY, *ROOMS, *MODELS, "rich"])


def test_to_import_the_package_and_the_plugin_imports_next_to_nothing() -> None:
    _, modules, _ = imported("import wanlat.__main__, wanlat.pytest_plugin")
    names = {"wanlat", "wanlat.pytest_plugin", "wanlat.__main__", "wanlat.start"}
    assert within(modules, ["wanlat"]) == names
    assert not within(modules, [*HEAVY, "pydantic", "rich", "typer"])


def test_the_summary_of_each_command_is_the_first_paragraph_of_its_help() -> None:
    loaded = {name: cli.load(name) for name in cli.COMMANDS}
    assert all(command.name == name and not command.hidden for name, command in loaded.items())
    said = {name: " ".join(each.help.split("\n\n")[0].split()) for name, each in loaded.items()}
    assert said == cli.COMMANDS


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ("run endpoint-latensy", "wanlat.cli.main"),
        ("run endpoint-latensy", "wanlat.experiments.config.files.find"),
        ("--help", "typer.core.TyperGroup.format_help"),
    ],
)
def test_an_interrupt_is_one_word(
    arguments: str,
    where: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupted)
    monkeypatch.setattr("wanlat.streams.secure", lambda: None)  # of this process's own streams
    monkeypatch.setattr("sys.argv", ["wanlat", *arguments.split()])
    with pytest.raises(SystemExit) as ended:
        start.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"
