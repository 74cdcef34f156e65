"""What takes part in a measurement besides a program's own file; and a change of it is seen."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import write_program
from tests.own_store import adopted
from wanlat.bundle.identity import differences
from wanlat.systems import registry
from wanlat.systems.base import Binary, System

DEFINITION = """
schema: 1
name: mine
protocol: exec
install: {path: mine}
version: {is: "1"}
nodes: {max: 3}
options:
  config: {type: path, many: list}
  words: {type: text, many: list}
files: {mine.conf: mine.conf.j2}
command: [mine, --data, "{here}/data/seed"]
exec: {command: ["{python}", "{here}/client.py"]}
endpoints: {Get: {op: get}}
"""
FILES = {
    "mine.conf.j2": "wal: true\n",
    "client.py": "import helper\nimport yaml\nfrom pack import part\n",
    "helper.py": "SIZE = 1\n",
    "pack/part.py": "SIZE = 1\n",
    "data/seed": "42",
    "hooks.py": "def f(): ...\n",
    "other.py": "unused = 1\n",
    "results/log.yaml": "unused: 1\n",
}


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    for name, text in FILES.items():
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    write_program(tmp_path / "mine" / "mine", "exit 0")
    monkeypatch.setattr(registry, "_system", _fresh)
    return adopted(tmp_path / "mine", DEFINITION)


def _fresh(directory: Path) -> System:
    from wanlat.systems.engine.definition import read

    definition, hooks = read(directory)
    return System(definition, directory, hooks)


def recorded(system: System, **options: Any) -> dict[str, Any]:
    parsed = system.parse_options(options)
    return system.recorded(parsed, system.binary_for(parsed))


def again(system: System) -> System:
    return _fresh(system.directory)


def test_all_that_a_definition_names_takes_part_and_nothing_else(mine: System) -> None:
    found = recorded(mine)
    named = {"system.yaml", *FILES} - {"other.py", "results/log.yaml"}
    assert {name for name in found["files"] if not name.startswith("program ")} == named
    assert "program python" in found["files"]
    assert found["definition"]["system.yaml"] == DEFINITION
    assert found["packages"].keys() == {"PyYAML"}
    assert differences(found, recorded(again(mine))) == []


@pytest.mark.parametrize(
    "name", ["mine.conf.j2", "client.py", "helper.py", "pack/part.py", "data/seed"]
)
def test_a_change_of_what_it_names_is_seen(mine: System, name: str) -> None:
    before = recorded(mine)
    (mine.directory / name).write_text("# changed\n")
    assert any(name in each for each in differences(before, recorded(again(mine))))


def test_a_change_of_what_it_does_not_name_is_none(mine: System) -> None:
    before = recorded(mine)
    for name in ("other.py", "results/log.yaml"):
        (mine.directory / name).write_text("# changed\n")
    assert differences(before, recorded(again(mine))) == []


def test_another_command_is_another_store(mine: System) -> None:
    before = recorded(mine)
    text = DEFINITION.replace("command: [mine,", "command: [mine, --slow,")
    (mine.directory / "system.yaml").write_text(text)
    (found,) = differences(before, recorded(again(mine)))
    assert "system.yaml" in found and "--slow" in found


@pytest.mark.parametrize(
    "options",
    [
        lambda path: {"config": [str(path)]},
        lambda path: {"config": [str(path.parent)]},
        lambda path: {"words": ["python3", str(path)]},
        lambda path: {"words": [f"--config={path}"]},
    ],
)
def test_the_files_that_options_name_take_part(
    mine: System, tmp_path: Path, options: Callable[[Path], dict[str, Any]]
) -> None:
    own = tmp_path / "settings" / "own.conf"
    own.parent.mkdir()
    own.write_text("wait: 53ms\n")
    before = recorded(mine, **options(own))
    own.write_text("wait: 247ms\n")
    assert any("own.conf" in each for each in differences(before, recorded(mine, **options(own))))


def test_what_a_script_of_a_virtual_environment_starts_takes_part(
    mine: System, tmp_path: Path
) -> None:
    environment = tmp_path / "environment"
    package = environment / "lib" / "python3.11" / "site-packages" / "mystore"
    package.mkdir(parents=True)
    (package / "main.py").write_text("def main(): ...\n")
    (environment / "bin").mkdir()
    (environment / "pyvenv.cfg").touch()
    (environment / "bin" / "python").symlink_to(sys.executable)
    launcher = environment / "bin" / "mystore"
    launcher.write_text(f"#!{environment}/bin/python\nfrom mystore.main import main\nmain()\n")
    program = Binary(launcher, "1", "the launcher's, which never changes")
    options = mine.parse_options({})
    before = mine.recorded(options, program)
    (package / "main.py").write_text("def main(): slower()\n")
    (found,) = differences(before, mine.recorded(options, program))
    assert "mystore/main.py" in found


def test_of_a_shipped_definition_all_takes_part_also_where_another_extends_it(
    tmp_path: Path,
) -> None:
    program = Binary(Path(sys.executable), "1", "")
    minio = registry.get("minio")
    own = minio.recorded(minio.parse_options({}), program)
    assert own["title"] == "MinIO"
    assert own["files"].keys() == {"system.yaml", "hooks.py", "grid.py", "grid.yaml"}
    mine = adopted(tmp_path, "schema: 1\nname: mine\nextends: minio\n")
    files = mine.recorded(mine.parse_options({}), program)["files"]
    assert files["minio/hooks.py"] == own["files"]["hooks.py"]
    assert {"system.yaml", "minio/system.yaml"} <= files.keys()
