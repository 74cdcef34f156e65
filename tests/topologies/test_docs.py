"""The pages on topologies and imports tell the truth: their examples are real."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command_line import here
from wanlat.topologies.load import TopologyError, load, shipped
from wanlat.topologies.matrix_import import import_matrix
from wanlat.topologies.resolve import resolve
from wanlat.topologies.tables import Table

DOCS = Path(__file__).parents[2] / "docs"
TOPOLOGY, IMPORTS = "reference/topology.md", "how-to/topologies.md"
LIMA = "191.2\n190.4\n197.0\n"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"```(\w*)\n(.*?)```", text, flags=re.DOTALL)
    return [block for kind, block in found if kind == language]


EXAMPLES = [text for text in blocks(TOPOLOGY, "yaml") if text.startswith("name:")]


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("places.csv").write_text(blocks(IMPORTS, "csv")[0], encoding="utf-8")


def test_the_examples_of_topologies_mean_what_their_comments_say() -> None:
    Path("offices.yaml").write_text(EXAMPLES[0], encoding="utf-8")
    plan = resolve(load("offices.yaml"))
    assert plan.rtt_ms("web", "db") == 0.5
    assert plan.rtt_ms("web", "cache") == 300 + 95 + 0.25
    assert plan.jitter_ms("web", "tokyo-3") == 4
    Path("rough.yaml").write_text(EXAMPLES[1], encoding="utf-8")
    Path("lima.txt").write_text(LIMA, encoding="utf-8")
    paris_lima, paris_ship, _ = resolve(load("rough.yaml")).wan_links
    assert paris_lima.forward.table == Table.of_samples(map(float, LIMA.split())).quantiles
    assert paris_ship.backward.loss_probability == pytest.approx(0.032, abs=0.0005)


def test_the_errors_are_the_real_ones() -> None:
    (wrong,) = EXAMPLES[2:]
    Path("wrong.yaml").write_text(wrong, encoding="utf-8")
    with pytest.raises(TopologyError) as caught:
        load(Path("wrong.yaml"))
    assert f"{caught.value}\n" in blocks(TOPOLOGY, "")


def test_the_matrices_become_what_the_page_says() -> None:
    lines = "".join(blocks(IMPORTS, "")).splitlines()
    command = next(line for line in lines if line.startswith("wanlat topology import places"))
    done = here(*command.split()[1:])
    assert done.returncode == 0 and "two different round trips" in done.stderr
    made = Path("places.yaml").read_text(encoding="utf-8")
    assert "# Measured with ping, March 2026" in made  # the comments of the matrix
    plan = resolve(load("places.yaml"))
    assert plan.rtt_ms("frankfurt-1", "tokyo-2") == 230  # what the matrix says
    assert plan.rtt_ms("frankfurt-1", "frankfurt-2") == 0.4
    Path("places.csv").write_text(blocks(IMPORTS, "csv")[1], encoding="utf-8")
    assert resolve(import_matrix("places.csv").topology).rtt_ms("paris-1", "home-1") == 24


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks(TOPOLOGY, "python")[0], TOPOLOGY, "exec"), {})
    assert re.match(r"100.5 \(Impairment\(", capsys.readouterr().out)


def test_the_cloud_is_its_matrix() -> None:
    source = Path(__file__).parents[2] / "topologies" / "sources" / "azure-2026-07.csv"
    imported = import_matrix(source, name="azure-regions")
    ours = load("azure-regions")
    assert imported.topology.model_copy(update={"description": ours.description}) == ours
    assert "24 of 45 pairs have two" in " ".join(imported.notes)
    # East US to West Europe 83 ms, and back 85.
    assert resolve(ours).rtt_ms("east-us-1", "west-europe-1") == 84


def test_what_is_shipped_is_on_the_page() -> None:
    page = (DOCS / TOPOLOGY).read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in shipped())
