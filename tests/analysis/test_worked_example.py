"""The section that CONTRIBUTING has as an example is one: of a run, and of a matrix."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.bundles import GARAGE, MakeBundle
from wanlat.analysis import summary
from wanlat.analysis.report import report

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
MODULE = "wanlat.analysis.figures.drift"


@pytest.mark.usefixtures("few_resamples")
def test_it_has_its_table_its_json_its_sentence_and_its_chart(
    make_bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PAGE.read_text("utf-8").partition("## A section of the report\n")[2]
    source, *_ = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert source.count("\n") < 80
    module = ModuleType(MODULE)
    monkeypatch.setitem(sys.modules, MODULE, module)
    exec(compile(source, MODULE, "exec"), module.__dict__)
    registered = {**summary.SECTIONS, "drift": module.DRIFT.answer}
    monkeypatch.setattr(summary, "SECTIONS", registered)
    slower = [100.0] * 50 + [150.0] * 50
    bundle = make_bundle(systems=[GARAGE], values_ms={("garage", "GetObject"): slower})
    made = report(bundle)
    rows = json.loads(made.summary_path.read_text())["drift"]["endpoints"]
    ratios = {row["endpoint"]: row["ratio"] for row in rows}
    assert ratios["GetObject"] == 1.5 and len(ratios) == 5
    tables = (bundle / "tables.md").read_text()
    assert "second half ms" in tables and re.search(r"Slower by a tenth[^.]*GetObject", tables)
    assert (bundle / "charts" / "drift.png").stat().st_size > 0
