"""A bundle that somebody else wrote, or that is damaged, renders or is refused with where and why;
nothing in it is obeyed by a page or by a terminal.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from answers import changing, opened
from damaged_bundles import HOSTILE, STORED, make_hostile, places, replaced, stored
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pages import Page
from rich.console import Console

from tests.command_line import here
from wanlat.analysis.report import html
from wanlat.analysis.summary import print_summary, summarize
from wanlat.bundle.errors import BundleError, refusing

pytestmark = [
    pytest.mark.usefixtures("few_resamples"),
    pytest.mark.filterwarnings("ignore:Glyph", "ignore:constrained_layout"),
]
FILES = sorted(
    path.relative_to(STORED)
    for path in STORED.rglob("*")
    if path.is_file() and path.name != "summary.json"
)
VALUES = st.sampled_from(
    [
        *(None, True, 0, -1, 10**30, 1.5, float("nan"), float("inf"), "", "x", HOSTILE, "\ud800"),
        *([], [1], ["x"], [{}], [[]], {}, {"name": 3}, {"x": {"y": 1}}),
    ]
)


def rendered(directory: Path) -> None:
    """Make all of a report but its charts, which take long to draw."""
    with refusing(directory):
        summary = summarize(opened(directory))
        Page(html.page(summary, []))
        summary.to_text()
        print_summary(summary, Console(file=io.StringIO()), verbose=True)


@st.composite
def damages(draw: st.DrawFn) -> tuple[Path, bytes]:
    """A file of a stored bundle, and what somebody made of it."""
    path = draw(st.sampled_from([each for each in FILES if each.suffix != ".parquet"]))
    if draw(st.integers(0, 3)) == 0:
        path = draw(st.sampled_from(FILES))
        whole = (STORED / path).read_bytes()
        return path, whole[: draw(st.integers(0, len(whole) - 1))]
    lines = (STORED / path).read_text("utf-8").splitlines() if path.suffix == ".jsonl" else []
    number = draw(st.integers(0, max(0, len(lines) - 1)))
    document = json.loads(lines[number] if lines else (STORED / path).read_text("utf-8"))
    for _ in range(draw(st.integers(1, 2))):
        here = draw(st.sampled_from([*places(document)]))
        document = replaced(document, here, draw(VALUES))
    lines[number : number + 1] = [json.dumps(document)]
    return path, "\n".join(lines).encode()


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(damages())
def test_a_damaged_bundle_renders_or_is_refused_with_its_place(
    tmp_path: Path, damage: tuple[Path, bytes]
) -> None:
    path, left = damage
    bundle = stored(path.parts[0], tmp_path / path.parts[0])
    (tmp_path / path).write_bytes(left)
    try:
        rendered(bundle)
    except BundleError as error:
        assert str(bundle) in str(error)


@pytest.mark.parametrize(
    ("name", "key", "value", "said"),
    [
        ("study", "study", 3, "study: Input should be a valid"),
        ("study", "study", {"endpoints": 7}, "study.endpoints"),
        ("study", "topology", "five-sites", "topology: Input should be a valid"),
        ("study", "topology", {"sites": ["dc1"]}, "topology.sites.0"),
        ("study", "topology", {"sites": [{"name": "dc1", "nodes": {}}]}, "topology.sites.0.nodes"),
        ("study", "topology", {"sites": [{"name": "a", "nodes": 10**30}]}, "topology.sites"),
        ("study", "topology", {"sites": [{"name": "a", "nodes": 99_999}] * 2}, "topology.sites"),
        ("study", "client", ["n1"], "client"),
        ("study", "seed", -1, "seed: Input should be greater than or equal to 0"),
        ("study", "seed", float("nan"), "NaN is no JSON"),
        ("study", "resources", {"stretched": 3}, "resources.stretched"),
        ("round-trips", "capture", {"files": [3]}, "capture.files.0"),
        ("drill", "clients", {"one": "n1"}, "clients.one"),
        ("drill", "drill", {"phases": [1]}, "drill.phases"),
        ("drill", "claims", [{"availability": [1]}], "a value in one of them"),
        ("matrix", "parameters", [{"name": "x"}], "parameters.0.values"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, name: str, key: str, value: Any, said: str
) -> None:
    bundle = stored(name, tmp_path / name)
    with changing(bundle / "manifest.json") as manifest:
        manifest[key] = value
    done = here("report", str(bundle))
    assert (done.returncode, done.stdout) == (2, "")
    assert str(bundle) in done.stderr and said in done.stderr and "Traceback" not in done.stderr


def test_nothing_in_a_bundle_is_obeyed(tmp_path: Path) -> None:
    bundle = stored("study", tmp_path / "study")
    make_hostile(bundle)
    done = here("report", str(bundle), "-v", "--json")
    assert done.returncode == 0, done.stderr
    written = [(bundle / each).read_text() for each in ("report.html", "tables.md", "summary.json")]
    for text in (done.stderr, done.stdout, *written):
        assert "alert(1)" in text
        assert not set(text) & {*map(chr, range(9)), "\x1b", "\x07", "\x9b"}
    json.loads(done.stdout)
    page = Page(written[0])
    assert "<script>alert" not in written[0]
    assert not any(name.startswith("on") for _, names in page.kinds for name in names)
    refused = here("report", str(tmp_path / HOSTILE.replace("/", "")))
    assert refused.returncode == 2 and "\x1b" not in refused.stderr
