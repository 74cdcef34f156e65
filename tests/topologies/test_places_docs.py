"""The pages on real places and on exports tell the truth: their examples are what comes out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from wanlat.topologies.export.exported import export
from wanlat.topologies.load import load, shipped
from wanlat.topologies.matrix import MatrixError
from wanlat.topologies.matrix_import import import_matrix
from wanlat.topologies.resolve import resolve

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"```(\w*)\n(.*?)```", text, flags=re.DOTALL)
    return [block for kind, block in found if kind == language]


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def places(number: int) -> None:
    Path("places.csv").write_text(blocks("real-places.md", "csv")[number], encoding="utf-8")


def undated(text: str) -> str:
    return re.sub(r"\(\d{4}-\d\d-\d\d\)", "(a date)", text)


def test_the_matrix_becomes_the_file_and_the_command_says_so() -> None:
    places(0)
    (command,) = [
        line for line in commands("real-places.md") if line.startswith("wanlat topology i")
    ]
    done = subprocess.run(
        [sys.executable, "-m", "wanlat.cli", *command.split()[1:]],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr in blocks("real-places.md", "")
    assert done.stdout == ""
    (shown,) = blocks("real-places.md", "yaml")
    assert undated(Path("places.yaml").read_text(encoding="utf-8")) == undated(shown)
    plan = resolve(load("places.yaml"))
    assert plan.rtt_ms("frankfurt-1", "tokyo-2") == 230


def commands(page: str) -> list[str]:
    return [line for block in blocks(page, "") for line in block.splitlines()]


def test_the_long_form_means_what_it_says() -> None:
    places(1)
    plan = resolve(import_matrix("places.csv").topology)
    assert plan.rtt_ms("paris-1", "home-1") == 24
    (_, home, _) = plan.path("paris-1", "home-1")
    assert (home.jitter_ns, home.loss, home.rate_bps) == (3 * 10**6, 0.001, 8 * 10**6)


def test_the_error_is_the_real_one() -> None:
    places(2)
    with pytest.raises(MatrixError) as caught:
        import_matrix("places.csv")
    assert f"{caught.value}\n" in blocks("real-places.md", "")


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    places(0)
    (code,) = blocks("real-places.md", "python")
    exec(compile(code, "real-places.md", "exec"), {})
    assert capsys.readouterr().out == "230.0 2\n"


def test_every_shipped_place_is_on_the_page() -> None:
    page = (DOCS / "real-places.md").read_text(encoding="utf-8")
    made_up = {"one-site", "four-sites", "five-sites", "three-datacenters"}
    assert all(f"`{name}`" in page for name in set(shipped()) - made_up)


def test_what_the_page_says_of_home_lines_is_in_the_topology() -> None:
    page = (DOCS / "real-places.md").read_text(encoding="utf-8")
    for link in resolve(load("community-hosting")).lan_links:
        assert link.up.rate_bps is not None and link.down.rate_bps is not None
        rtt_ms = (link.up.delay_ns + link.down.delay_ns) / 1e6
        down, up = link.down.rate_bps / 1e6, link.up.rate_bps / 1e6
        assert f"| {down:g} Mbit/s | {up:g} Mbit/s | {rtt_ms:g} ms |" in page


def test_the_exports_shown_are_the_real_ones() -> None:
    (router, chaos) = map(yaml.safe_load, blocks("export.md", "yaml"))
    (clab, _) = export(load("three-datacenters"), "containerlab").files.values()
    nodes = yaml.safe_load(clab)["topology"]["nodes"]
    assert router["site.dc1"] == nodes["site.dc1"]
    (text,) = export(load("three-datacenters"), "chaos-mesh").files.values()
    assert chaos in list(yaml.safe_load_all(text))


def test_the_files_that_the_page_names_are_the_files() -> None:
    page = (DOCS / "export.md").read_text(encoding="utf-8")
    for target in ("containerlab", "chaos-mesh"):
        for name in export(load("three-datacenters"), target).files:
            assert name in page
