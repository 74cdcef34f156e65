"""The pages on topologies, real places and exports tell the truth: their examples are real."""

from __future__ import annotations

import math
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.command_line import here
from wanlat.topologies.export.exported import export
from wanlat.topologies.load import TopologyError, load, shipped
from wanlat.topologies.matrix import MatrixError
from wanlat.topologies.matrix_import import import_matrix
from wanlat.topologies.model import Link
from wanlat.topologies.resolve import GilbertElliott, resolve
from wanlat.topologies.shapes import extent
from wanlat.topologies.tables import Table
from wanlat.topologies.units import Duration

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"```(\w*)\n(.*?)```", text, flags=re.DOTALL)
    return [block for kind, block in found if kind == language]


EXAMPLES = [text for text in blocks("topologies.md", "yaml") if text.startswith("name:")]


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_first_example_means_what_its_comments_say() -> None:
    Path("offices.yaml").write_text(EXAMPLES[0], encoding="utf-8")
    plan = resolve(load("offices.yaml"))
    assert plan.rtt_ms("web", "db") == 0.5
    assert [node.name for node in plan.site("tokyo").nodes] == ["tokyo-1", "tokyo-2", "tokyo-3"]
    assert plan.rtt_ms("tokyo-1", "cache") == 200
    assert plan.rtt_ms("web", "cache") == 300 + 95 + 0.25
    assert plan.jitter_ms("web", "tokyo-3") == 4


def test_the_example_of_impairments_means_what_the_page_says() -> None:
    Path("rough.yaml").write_text(EXAMPLES[1], encoding="utf-8")
    # As ping prints them, through the page's own sed.
    page = (DOCS / "topologies.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"\| (sed .*) > lima.txt", page)
    times = [round(190 + (i * 7919 % 100) ** 2 / 500, 1) for i in range(100)]
    pings = "".join(f"64 bytes from x: icmp_seq=1 ttl=54 time={ms} ms\n" for ms in times)
    lines = subprocess.run(
        command, shell=True, input=pings, capture_output=True, text=True, check=True
    ).stdout
    Path("lima.txt").write_text(f"# to Lima\n{lines}", encoding="utf-8")
    plan = resolve(load("rough.yaml"))
    paris_lima, paris_ship, lima_ship = plan.wan_links
    assert lima_ship.forward.distribution == "normal"
    assert paris_lima.forward.table == Table.of(times).quantiles
    assert paris_ship.backward.bursts == GilbertElliott(p=0.01, r=0.3, h=0, k=1)
    assert paris_ship.backward.loss_probability == pytest.approx(0.032, abs=0.0005)
    assert (paris_ship.forward.overtake, paris_ship.forward.reorder) == (0.01, False)
    assert plan.deviation_ms("n2", "n3") == pytest.approx(12 / math.sqrt(2))


@pytest.mark.parametrize(
    ("shape", "smallest", "largest", "most"),
    [("uniform", -1, 1, 10), ("normal", -3.67, 3.67, 2.7), ("pareto", -0.61, 22.9, 16.3)],
)
def test_the_limits_of_jitter_are_those_of_the_page(
    shape: str, smallest: float, largest: float, most: float
) -> None:
    assert extent(shape) == (pytest.approx(smallest, abs=0.005), pytest.approx(largest, abs=0.05))
    with pytest.raises(ValueError, match=r"at most `[0-9.a-z]+`") as caught:
        Link.model_validate({"rtt": "10ms", "jitter": "20ms", "distribution": shape})
    limit = Duration.parse(re.findall("at most `([^`]+)`", str(caught.value))[0])
    assert Link.model_validate({"rtt": "10ms", "jitter": str(limit), "distribution": shape})
    assert limit.ms == pytest.approx(most, abs=0.05)
    with pytest.raises(ValueError, match="negative"):
        over = Duration(limit.ns + 1)
        Link.model_validate({"rtt": "10ms", "jitter": str(over), "distribution": shape})


@pytest.mark.parametrize("example", EXAMPLES[2:])
def test_the_errors_are_the_real_ones(example: str) -> None:
    file = Path(f"{example.split()[1]}.yaml")
    file.write_text(example, encoding="utf-8")
    Path("lima.txt").write_text("191.2\n190.4\ntimeout\n197.0\n", encoding="utf-8")
    with pytest.raises(TopologyError) as caught:
        load(file)
    assert f"{caught.value}\n" in blocks("topologies.md", "")


def test_the_matrix_becomes_the_file_and_the_command_says_so() -> None:
    Path("places.csv").write_text(blocks("real-places.md", "csv")[0], encoding="utf-8")
    lines = "".join(blocks("real-places.md", "")).splitlines()
    (command,) = [line for line in lines if line.startswith("wanlat topology import")]
    done = here(*command.split()[1:])
    assert done.stderr in blocks("real-places.md", "")
    (shown,) = blocks("real-places.md", "yaml")
    made = Path("places.yaml").read_text(encoding="utf-8")
    date = re.compile(r"\(\d{4}-\d\d-\d\d\)")
    assert date.sub("", made) == date.sub("", shown)
    assert resolve(load("places.yaml")).rtt_ms("frankfurt-1", "tokyo-2") == 230


def test_the_other_matrices_mean_what_the_page_says() -> None:
    _, long, wrong = blocks("real-places.md", "csv")
    Path("places.csv").write_text(long, encoding="utf-8")
    plan = resolve(import_matrix("places.csv").topology)
    assert plan.rtt_ms("paris-1", "home-1") == 24
    (_, home, _) = plan.path("paris-1", "home-1")
    assert (home.jitter_ns, home.loss, home.rate_bps) == (3 * 10**6, 0.001, 8 * 10**6)
    Path("places.csv").write_text(wrong, encoding="utf-8")
    with pytest.raises(MatrixError) as caught:
        import_matrix("places.csv")
    assert f"{caught.value}\n" in blocks("real-places.md", "")


@pytest.mark.parametrize(
    ("page", "prints"),
    [("topologies.md", "100.5 (Impairment(delay_ns=125000, "), ("real-places.md", "230.0 2\n")],
)
def test_the_python_examples_run(
    page: str, prints: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("places.csv").write_text(blocks("real-places.md", "csv")[0], encoding="utf-8")
    (code,) = blocks(page, "python")
    exec(compile(code, page, "exec"), {})
    assert capsys.readouterr().out.startswith(prints)


def test_every_shipped_topology_is_on_the_page() -> None:
    page = (DOCS / "topologies.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in shipped())


def test_the_exports_shown_are_the_real_ones() -> None:
    (router, chaos, *_) = map(yaml.safe_load, blocks("export.md", "yaml"))
    clab = export(load("three-datacenters"), "containerlab").files
    mesh = export(load("three-datacenters"), "chaos-mesh").files
    nodes = yaml.safe_load(clab["three-datacenters.clab.yml"])["topology"]["nodes"]
    assert router["site.dc1"] == nodes["site.dc1"]
    assert chaos in list(yaml.safe_load_all("".join(mesh.values())))
    page = (DOCS / "export.md").read_text(encoding="utf-8")
    assert all(name in page for name in (*clab, *mesh))
