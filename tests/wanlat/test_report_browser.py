"""Pages in a real browser: no error, nothing fetched, and they work with mouse and keys."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.needs import chromium, needs
from wanlat.analysis.report import beside, report
from wanlat.analysis.stats import intervals
from wanlat.analysis.view.server import serve

sys.path.append(str(Path(__file__).parents[1] / "analysis"))
from damaged_bundles import make_hostile, stored
from drill_bundles import Fault, stalled, write_drill

from tests.bundles import GARAGE, MINIO, write_bundle

pytestmark = pytest.mark.programs
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


@dataclass
class Tab:
    """A page, and what a browser had to say of it and asked for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: Path | str) -> Any:
        self.page.on("console", lambda said: self.complaints.append(f"{said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path if isinstance(path, str) else path.as_uri())
        return self.page

    def check(self, path: Path) -> None:
        """Hold that nobody complained, and that nothing but the file itself was asked for."""
        assert self.complaints == []
        asked = {url for url in self.requests if not url.startswith("data:")}
        assert asked == {path.as_uri()}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    needs("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def tab(browser: Any) -> Iterator[Tab]:
    context = browser.new_context(viewport=DESK)
    yield Tab(context.new_page())
    context.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A study with failures and hostile words, a drill, and two runs beside each other."""
    needs("chromium")
    place = tmp_path_factory.mktemp("bundles")
    for name in ("study", "other", "drill"):
        (place / name).mkdir()
    described = {"study": {"name": HOSTILE, "description": HOSTILE}, "warnings": [HOSTILE]}
    write_bundle(
        place / "study",
        systems=(GARAGE, MINIO),
        n=30,
        failures={("minio", "GetObject"): (1, 2)},
        manifest=described,
    )
    write_bundle(place / "other", systems=(GARAGE,), n=30, manifest={"storage": "disk"})
    kill = Fault("kill", "n2", 5.0, 8.0, nodes=["n2"])
    write_drill(
        place / "drill", faults=[kill], troubles=[stalled(2.0, 5.0)], phases_s=(4.0, 6.0, 5.0)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "RESAMPLES", 499)
        made = {name: report(place / name).page_path for name in ("study", "drill")}
        beside([place / "study", place / "other"], place / "beside.html", lambda _: None)
    return made | {"beside": place / "beside.html"}


def column(page: Any, number: int) -> list[str]:
    """The cells of a column of the first table that are shown, without their intervals."""
    shown = "#tables table >> nth=0 >> tbody tr:not([hidden])"
    cells: list[str] = page.locator(shown).locator(f"td:nth-child({number})").all_inner_texts()
    return [each.split(" [")[0].strip() for each in cells]


def test_tables_are_sorted_and_filtered(tab: Tab, pages: dict[str, Path]) -> None:
    page = tab.open(pages["study"])
    table = page.locator("#tables table").first
    heads = [each.strip() for each in table.locator("th").all_inner_texts()]
    place = heads.index("median ms") + 1
    before = column(page, place)
    button = table.locator("th button", has_text="median ms")
    orders = []
    for _ in range(3):
        button.press("Enter")
        orders.append(column(page, place))
    figures = sorted(map(float, before))
    assert [float(each) for each in orders[0]] == figures
    assert [float(each) for each in orders[1]] == figures[::-1]
    assert orders[2] == before
    search = page.locator("#tables input[type=search]").first
    search.fill("minio putobject")
    assert column(page, 2) == ["PutObject"]
    assert page.locator("#tables output").first.inner_text() == "1 of 10 rows"
    search.fill("")
    assert len(column(page, 1)) == 10
    tab.check(pages["study"])


def test_a_sample_says_what_it_was_to_the_mouse_and_to_keys(
    tab: Tab, pages: dict[str, Path]
) -> None:
    page = tab.open(pages["study"])
    plot, readout = page.locator(".plot"), page.locator(".readout")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    across = [box["x"] + box["width"] * share / 60 for share in range(8, 60)]
    for x in across:  # along the first lane until a sample is near
        page.mouse.move(x, box["y"] + 50)
        if "Garage" in readout.inner_text():
            break
    said = readout.inner_text().lower()
    for word in ("garage 2.5.0 · listbuckets", "outcome", "connect", "first byte", "network error"):
        assert word in said
    plot.focus()
    page.keyboard.press("Home")
    first = readout.inner_text()
    page.keyboard.press("ArrowRight")
    assert readout.inner_text() != first
    page.keyboard.press("ArrowDown")
    assert "MinIO" in readout.inner_text()
    for name in ("over time", "by latency"):
        page.get_by_text(name, exact=True).click()
    page.get_by_text("The same samples as a table").click()
    rows = page.locator("#samples table tbody tr")
    rows.nth(299).wait_for(state="attached")  # it is made after the click
    assert rows.count() == 300
    page.locator("#samples input[type=search]").fill("timeout")
    assert page.locator("#samples tbody tr:not([hidden])").count() == 2
    tab.check(pages["study"])


def test_runs_beside_each_other_show_one_figure_at_a_time(tab: Tab, pages: dict[str, Path]) -> None:
    page = tab.open(pages["beside"])
    block = page.locator("[data-figures]").first
    assert block.locator("table:visible").count() == 1
    block.locator("select").select_option("p99 ms")
    assert block.locator("[data-figure='p99 ms'] table").is_visible()
    tab.check(pages["beside"])


def test_a_run_under_way_is_followed(tab: Tab, tmp_path: Path) -> None:
    write_bundle(tmp_path, systems=(GARAGE,), n=20, as_lines=True, manifest={"status": "running"})
    lines = (tmp_path / "samples.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "samples.jsonl").write_bytes(b"".join(lines[:10]))
    server, address = serve(tmp_path, lambda _: None)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        page = tab.open(address)
        page.locator("tbody a").click()
        page.locator(".plot canvas").wait_for()
        with (tmp_path / "samples.jsonl").open("ab") as file:
            file.writelines(lines[10:])
        page.get_by_text("running, 100 samples").wait_for()
        page.locator(".plot").press("End")
        assert "Garage 2.5.0" in page.locator(".readout").inner_text()
        manifest = tmp_path / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"running"', '"complete"'))
        page.get_by_text("Its report").click()
        page.get_by_text("RTTs on Garage").first.wait_for()
        assert tab.complaints == []
        assert all(url.startswith((address, "data:")) for url in tab.requests)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_nothing_that_a_bundle_says_is_run(tab: Tab, tmp_path: Path) -> None:
    bundle = stored("study", tmp_path / "study")
    make_hostile(bundle)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "RESAMPLES", 499)
        made = report(bundle).page_path
    page = tab.open(made)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    page.locator(".plot").focus()
    page.keyboard.press("Home")
    assert "<script>alert(1)</script>" in page.locator(".readout").inner_text()
    page.locator("#samples input[type=search]").fill("alert(1)")
    page.locator("#tables th button").first.click()
    assert page.locator("#samples tbody tr:not([hidden])").count() > 20
    assert page.evaluate("document.scripts.length") == 2  # ours, and the samples
    assert page.locator("img[src='x']").count() == 0
    tab.check(made)


@pytest.mark.parametrize(
    ("name", "scheme"),
    [("study", "light"), ("study", "dark"), ("drill", "dark"), ("beside", "light")],
)
def test_it_is_within_reach_of_everybody_on_any_screen(
    tab: Tab, pages: dict[str, Path], name: str, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = tab.open(pages[name])
    page.emulate_media(color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    page.set_viewport_size(PHONE)
    wide = "document.documentElement.scrollWidth"
    assert page.evaluate(wide) <= PHONE["width"]
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    tab.check(pages[name])
