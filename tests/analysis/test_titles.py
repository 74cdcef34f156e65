"""A system is called by its title, whosever it is: in tables, charts, reports and comparisons."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from chart_checks import texts_of
from rich.console import Console
from trace_bundles import bundle_of, rounds

from tests.bundles import GARAGE
from wanlat.analysis.compare import compare
from wanlat.analysis.compare.judge import Thresholds
from wanlat.analysis.compare.report import document, page, print_comparison
from wanlat.analysis.report import charts_of, page_of
from wanlat.analysis.summary import print_summary, summarize
from wanlat.analysis.trace_words import title
from wanlat.bundle.documents import Manifest, titles_of
from wanlat.bundle.matrix import read_source
from wanlat.bundle.run import read_run

pytestmark = pytest.mark.usefixtures("few_resamples")

STORE = "My own Store"
MINE = {"name": "mystore", "version": "1.0", "title": STORE}


def own_store(make_bundle: Any, name: str = "b") -> Path:
    """A study of a store of one's own, and of another without a title."""
    other = dict(zip(("name", "version"), GARAGE, strict=True))
    systems = {"systems": [("mystore", "1.0"), GARAGE], "manifest": {"systems": [MINE, other]}}
    path: Path = make_bundle(name=name, **systems, endpoints=["GetObject", "PutObject"])
    return path


def called(*systems: dict[str, str]) -> dict[str, str]:
    """What each system is called, by its name."""
    every = [{"version": "1", **system} for system in systems]
    manifest = Manifest.model_validate({"schema_version": 2, "kind": "study", "systems": every})
    return {one["name"]: titles_of(manifest)[one["name"]] for one in systems}


def test_tables_charts_and_pages_call_a_system_of_ones_own_by_its_title(make_bundle: Any) -> None:
    path = own_store(make_bundle)
    summary, printed = summarize(read_source(path)), io.StringIO()
    print_summary(summary, Console(file=printed, width=200), verbose=True)
    assert f"{STORE} 1.0" in printed.getvalue()
    assert "mystore" not in printed.getvalue()
    charts = {}
    for stem, figure in charts_of(summary):
        keys = [text.get_text() for legend in figure.legends for text in legend.texts]
        charts[stem] = " ".join([*texts_of(figure), *keys])
    assert charts.keys() == {"endpoint-latency", "calibration"}
    assert all(STORE in text and "mystore" not in text for text in charts.values())
    assert f"garage {GARAGE[1]}" in charts["endpoint-latency"]  # which has no title
    assert f"{STORE} 1.0" in page_of(path, lambda _: None)


def test_a_comparison_calls_it_so_too(make_bundle: Any) -> None:
    runs = [read_run(own_store(make_bundle, name)) for name in ("old", "new")]
    comparison, printed = compare(*runs, Thresholds()), io.StringIO()
    print_comparison(comparison, Console(file=printed, width=200))
    assert f"{STORE} " in printed.getvalue()
    assert f"| {STORE} |" in page(comparison)
    assert {each["system"] for each in document(comparison)["endpoints"]} == {"mystore", "garage"}


def test_a_trace_calls_it_so_too(tmp_path: Path) -> None:
    from trace_bundles import PUT

    from wanlat.analysis.charts.sequence import draw
    from wanlat.analysis.trace import trace_of

    series = {"name": "made-up", "version": "1", "title": STORE}
    trace = trace_of(bundle_of(tmp_path, [rounds(1)] * 3, systems=[series]), PUT)
    assert title(trace).startswith(f"Put on {STORE} 1: ")
    assert f"Put on {STORE} 1" in " ".join(texts_of(draw(trace)))


def test_without_a_title_or_with_one_that_another_has_a_system_is_called_by_its_name() -> None:
    mine, theirs = {"name": "mine", "title": "MinIO"}, {"name": "minio", "title": "MinIO"}
    assert called(mine, {"name": "bob"}) == {"mine": "MinIO", "bob": "bob"}
    assert called(mine, theirs) == {"mine": "mine", "minio": "minio"}
