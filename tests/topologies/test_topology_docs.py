"""The page on topologies tells the truth: its examples load, its errors are the real ones."""

import math
import re
import subprocess
from pathlib import Path

import pytest

from wanlat.topologies.load import TopologyError, load
from wanlat.topologies.model import Link
from wanlat.topologies.resolve import GilbertElliott, resolve
from wanlat.topologies.shapes import extent
from wanlat.topologies.tables import Table
from wanlat.topologies.units import Duration

PAGE = Path(__file__).parents[2] / "docs" / "topologies.md"
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
EXAMPLES = [text for language, text in BLOCKS if language == "yaml" and text.startswith("name:")]


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
    (command,) = re.findall(r"\| (sed .*) > lima.txt", PAGE.read_text(encoding="utf-8"))
    times = [round(190 + (i * 7919 % 100) ** 2 / 500, 1) for i in range(100)]
    pings = "".join(f"64 bytes from x: icmp_seq=1 ttl=54 time={ms} ms\n" for ms in times)
    lines = subprocess.run(
        command, shell=True, input=pings, capture_output=True, text=True, check=True
    ).stdout
    assert lines.split() == [str(ms) for ms in times]
    Path("lima.txt").write_text(f"# to Lima\n{lines}", encoding="utf-8")
    plan = resolve(load("rough.yaml"))
    paris_lima, paris_ship, lima_ship = plan.wan_links
    assert lima_ship.forward.distribution == "normal"
    assert lima_ship.forward.correlation == 0.25
    assert paris_lima.forward.table == Table.of(times).quantiles
    assert paris_ship.backward.bursts == GilbertElliott(p=0.01, r=0.3, h=0, k=1)
    assert paris_ship.backward.loss_probability == pytest.approx(0.032, abs=0.0005)
    assert (paris_ship.forward.overtake, paris_ship.forward.reorder) == (0.01, False)
    assert plan.deviation_ms("n2", "n3") == pytest.approx(12 / math.sqrt(2))


@pytest.mark.parametrize(
    ("shape", "smallest", "largest", "most"),
    [("uniform", -1, 1, "10ms"), ("normal", -3.67, 3.67, "2.7"), ("pareto", -0.61, 22.9, "16.3")],
)
def test_the_limits_of_jitter_are_those_of_the_page(
    shape: str, smallest: float, largest: float, most: str
) -> None:
    assert extent(shape) == (pytest.approx(smallest, abs=0.005), pytest.approx(largest, abs=0.05))
    with pytest.raises(ValueError, match=r"at most `[0-9.a-z]+`") as caught:
        Link.model_validate({"rtt": "10ms", "jitter": "20ms", "distribution": shape})
    limit = Duration.parse(re.findall("at most `([^`]+)`", str(caught.value))[0])
    assert Link.model_validate({"rtt": "10ms", "jitter": str(limit), "distribution": shape})
    assert limit.ms == pytest.approx(float(most.removesuffix("ms")), abs=0.05)
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
    assert f"{caught.value}\n" in [text for _, text in BLOCKS]


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = [text for language, text in BLOCKS if language == "python"]
    exec(compile(code, str(PAGE), "exec"), {})
    assert capsys.readouterr().out.startswith("100.5 (Impairment(delay_ns=125000, jitter_ns=0")
