"""`wanlat topology import` and `export`: files, one JSON document, and errors one can act on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.command_line import here

MATRIX = "from,to,rtt_ms\na,b,30\nb,a,32\n"


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.csv").write_text(MATRIX)


def wanlat(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wanlat.cli", "topology", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_an_import_without_a_file_goes_to_stdout_and_its_findings_to_stderr() -> None:
    done = wanlat("import", "m.csv", "--name", "two")
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["name"] == "two"
    assert "both ends measured" in done.stderr


def test_an_import_as_json_is_one_document() -> None:
    done = wanlat("import", "m.csv", "--json", "--jitter", "10%", "--asymmetric", "max")
    document = json.loads(done.stdout)
    (pair,) = document["topology"]["links"]["pairs"]
    assert (pair["rtt"], pair["jitter"]) == ("32ms", "3.2ms")
    assert document["file"] is None and len(document["notes"]) == 1


def test_an_export_of_one_file_or_of_several() -> None:
    assert wanlat("export", "five-sites", "--to", "mininet", "--out", "plan.json").returncode == 0
    assert json.loads(Path("plan.json").read_text())["name"] == "five-sites"
    done = wanlat("export", "five-sites", "--to", "containerlab", "--out", "lab", "--json")
    written = [Path(each) for each in json.loads(done.stdout)["written"]]
    assert [each.name for each in written] == ["five-sites.clab.yml", "five-sites.netem.sh"]
    assert written[1].stat().st_mode & 0o111
    again = wanlat("export", "five-sites", "--to", "containerlab", "--out", "lab")
    assert again.returncode == 2 and "--force" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["import", "nowhere.csv"], "no such file"),
        (["import", "m.csv", "--unit", "hours"], "'s', 'ms', 'us', 'ns'"),
        (["import", "m.csv", "--asymmetric", "median"], "'mean', 'min', 'max', 'error'"),
        (["import", "m.csv", "--jitter", "5"], "no unit"),
        (["import", "m.csv", "--name", "My Places"], "--name"),
        (["import", "m.csv", "--out", "m.csv"], "--force"),
        (["import", "m.csv", "--out", "m.csv/places.yaml"], "cannot be written"),
        (["export", "five-sites", "--to", "gns3"], "mininet, containerlab and chaos-mesh"),
        (["export", "fife-sites", "--to", "mininet"], "five-sites"),
    ],
)
def test_a_users_mistake_ends_with_code_2_and_a_paragraph(arguments: list[str], says: str) -> None:
    done = here("topology", *arguments)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
