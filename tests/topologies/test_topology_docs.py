"""The page on topologies tells the truth: its examples load, its error is the real one."""

import re
from pathlib import Path

import pytest

from topologies.load import TopologyError, load
from topologies.resolve import resolve

PAGE = Path(__file__).parents[2] / "docs" / "topologies.md"
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
EXAMPLES = [text for language, text in BLOCKS if language == "yaml" and text.startswith("name:")]


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_example_means_what_its_comments_say() -> None:
    Path("offices.yaml").write_text(EXAMPLES[0], encoding="utf-8")
    plan = resolve(load("offices.yaml"))
    assert plan.rtt_ms("web", "db") == 0.5
    assert [node.name for node in plan.site("tokyo").nodes] == ["tokyo-1", "tokyo-2", "tokyo-3"]
    assert plan.rtt_ms("tokyo-1", "cache") == 200
    assert plan.rtt_ms("web", "cache") == 300 + 95 + 0.25
    assert plan.jitter_ms("web", "tokyo-3") == 4


def test_the_error_is_the_real_one() -> None:
    Path("offices.yaml").write_text(EXAMPLES[1], encoding="utf-8")
    with pytest.raises(TopologyError) as caught:
        load("offices.yaml")
    assert f"{caught.value}\n" in [text for _, text in BLOCKS]


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = [text for language, text in BLOCKS if language == "python"]
    exec(compile(code, str(PAGE), "exec"), {})
    assert capsys.readouterr().out.startswith("100.5 (Impairment(delay_ns=125000, jitter_ns=0")
