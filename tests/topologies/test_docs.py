"""The pages on topologies, real places and exports tell the truth: their examples are real."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.command_line import here
from wanlat.topologies.export.exported import export
from wanlat.topologies.load import TopologyError, load, shipped
from wanlat.topologies.matrix import MatrixError
from wanlat.topologies.matrix_import import import_matrix
from wanlat.topologies.resolve import resolve
from wanlat.topologies.tables import Table

DOCS = Path(__file__).parents[2] / "docs"
LIMA = "191.2\n190.4\n197.0\n"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"```(\w*)\n(.*?)```", text, flags=re.DOTALL)
    return [block for kind, block in found if kind == language]


EXAMPLES = [text for text in blocks("topologies.md", "yaml") if text.startswith("name:")]


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("places.csv").write_text(blocks("real-places.md", "csv")[0], encoding="utf-8")


def test_the_examples_of_topologies_mean_what_their_comments_say() -> None:
    Path("offices.yaml").write_text(EXAMPLES[0], encoding="utf-8")
    plan = resolve(load("offices.yaml"))
    assert plan.rtt_ms("web", "db") == 0.5
    assert plan.rtt_ms("web", "cache") == 300 + 95 + 0.25
    assert plan.jitter_ms("web", "tokyo-3") == 4
    Path("rough.yaml").write_text(EXAMPLES[1], encoding="utf-8")
    Path("lima.txt").write_text(LIMA, encoding="utf-8")
    paris_lima, paris_ship, _ = resolve(load("rough.yaml")).wan_links
    assert paris_lima.forward.table == Table.of(map(float, LIMA.split())).quantiles
    assert paris_ship.backward.loss_probability == pytest.approx(0.032, abs=0.0005)


@pytest.mark.parametrize("example", EXAMPLES[2:])
def test_the_errors_are_the_real_ones(example: str) -> None:
    file = Path(f"{example.split()[1]}.yaml")
    file.write_text(example, encoding="utf-8")
    Path("lima.txt").write_text("191.2\n190.4\ntimeout\n197.0\n", encoding="utf-8")
    with pytest.raises(TopologyError) as caught:
        load(file)
    assert f"{caught.value}\n" in blocks("topologies.md", "")


def test_the_matrices_become_what_the_page_says() -> None:
    lines = "".join(blocks("real-places.md", "")).splitlines()
    (command,) = [line for line in lines if line.startswith("wanlat topology import")]
    assert here(*command.split()[1:]).stderr in blocks("real-places.md", "")
    (shown,) = blocks("real-places.md", "yaml")
    made = Path("places.yaml").read_text(encoding="utf-8")
    date = re.compile(r"\(\d{4}-\d\d-\d\d\)")
    assert date.sub("", made) == date.sub("", shown)
    _, long, wrong = blocks("real-places.md", "csv")
    Path("places.csv").write_text(long, encoding="utf-8")
    assert resolve(import_matrix("places.csv").topology).rtt_ms("paris-1", "home-1") == 24
    Path("places.csv").write_text(wrong, encoding="utf-8")
    with pytest.raises(MatrixError) as caught:
        import_matrix("places.csv")
    assert f"{caught.value}\n" in blocks("real-places.md", "")


def test_the_python_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    for page in ("topologies.md", "real-places.md"):
        exec(compile(blocks(page, "python")[0], page, "exec"), {})
    assert re.match(r"100.5 \(Impairment\(.*\n230.0 2\n", capsys.readouterr().out)


def test_the_cloud_is_its_matrix() -> None:
    source = Path(__file__).parents[2] / "topologies" / "sources" / "azure-2026-07.csv"
    imported = import_matrix(source, name="azure-regions")
    ours = load("azure-regions")
    assert imported.topology.model_copy(update={"description": ours.description}) == ours
    assert "24 of 45 pairs have two" in " ".join(imported.notes)
    # East US to West Europe 83 ms, and back 85.
    assert resolve(ours).rtt_ms("east-us-1", "west-europe-1") == 84


def test_what_is_shipped_and_exported_is_on_the_pages() -> None:
    page = (DOCS / "topologies.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in shipped())
    (router, chaos, *_) = map(yaml.safe_load, blocks("export.md", "yaml"))
    clab = export(load("three-datacenters"), "containerlab").files
    mesh = export(load("three-datacenters"), "chaos-mesh").files
    nodes = yaml.safe_load(clab["three-datacenters.clab.yml"])["topology"]["nodes"]
    assert router["site.dc1"] == nodes["site.dc1"]
    assert chaos in list(yaml.safe_load_all("".join(mesh.values())))
