"""`wanlat view` answers its reader alone, from below its directory alone, and follows a run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest
from answers import changing
from pages import Page

from tests.bundles import QUORUM, MakeBundle
from wanlat.analysis.view.server import serve

pytestmark = pytest.mark.usefixtures("few_resamples")
DAMAGED = '{"schema_version": 2, "kind": "<i>"}'


class View:
    """A server, and what asks it."""

    def __init__(self, directory: Path) -> None:
        self.server, self.address = serve(directory, lambda _: None)
        self.where = urlsplit(self.address)
        self._thread = Thread(target=self.server.serve_forever, args=(0.01,))
        self._thread.start()

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        """Status and text of what is at a path below the token, or at an absolute one."""
        connection = HTTPConnection(str(self.where.netloc), timeout=60)
        target = path if path.startswith("/") else self.where.path + path
        connection.request(method, target, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status == 200:
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert "Access-Control-Allow-Origin" not in answer.headers
        return answer.status, text

    def close(self) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


@pytest.fixture
def place(make_bundle: MakeBundle, tmp_path: Path) -> Path:
    """A directory with a bundle, a damaged one and links that lead out; one is beside it."""
    make_bundle(name="secret", n=2, systems=[QUORUM], endpoints=["PutObject"])
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    shutil.copytree(tmp_path / "secret", shelf / "a study")
    (shelf / "damaged").mkdir()
    (shelf / "damaged" / "manifest.json").write_text(DAMAGED)
    (shelf / "out").symlink_to(tmp_path / "secret")
    return shelf


@pytest.fixture
def view(place: Path) -> Iterator[View]:
    made = View(place)
    yield made
    made.close()


def test_bundles_are_listed_and_shown_and_stay_as_they_are(place: Path, view: View) -> None:
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert view.where.hostname == "127.0.0.1" and len(view.where.path) > 30
    status, text = view.ask("")
    page = Page(text)
    rows = page.text("tr")[1:]
    assert status == 200 and len(rows) == 2 and "damaged" in rows[-1] and "<i>" not in text
    assert "report/a%20study" in page.addresses
    status, text = view.ask("report/a%20study")
    assert status == 200 and Page(text).text("h1") == ["endpoint-latency on five-sites"]
    status, text = view.ask("report/damaged")
    assert status == 422 and "manifest.json" in text
    shutil.copy(place / "a study" / "manifest.json", place / "damaged")
    with changing(place / "damaged" / "manifest.json") as fuzzed:
        fuzzed["topology"]["sites"] = ["<script>"]
    shutil.copy(place / "a study" / "samples.parquet", place / "damaged")
    status, text = view.ask("report/damaged")
    assert status == 422 and "damaged" in text
    (place / "damaged" / "samples.parquet").unlink()
    (place / "damaged" / "manifest.json").write_text(DAMAGED)
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_nobody_else_is_answered_and_nothing_from_elsewhere(view: View) -> None:
    root, token = "/", view.where.path.strip("/")
    own = str(view.where.netloc)
    other = token[:-1] + ("y" if token.endswith("x") else "x")
    for path in (root, f"/{other}/", f"/{token}x/", "//", "/report/a%20study"):
        assert view.ask(path)[0] == 403
    others = ({"Host": "evil.example"}, {"Host": f"localhost.evil.example:{view.where.port}"})
    for headers in (*others, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        assert view.ask("", **headers)[0] == 403
    assert view.ask("", **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert view.ask("", **{"Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin"})[0] == 200
    outside = ("../secret", "%2e%2e/secret", "..%2fsecret", "out", "a%20study/../../secret", "%00")
    for path in (*outside, "/etc", "a%20study/manifest.json", "x" * 5000):
        assert view.ask(f"report/{path}")[0] == 404, path
    assert view.ask("manifest.json")[0] == view.ask("other/a%20study")[0] == 404
    assert view.ask("", "POST")[0] == 501


def test_a_run_is_followed_as_it_grows(place: Path, view: View) -> None:
    path = place / "a study"
    with changing(path / "manifest.json") as manifest:
        manifest["status"] = "running"
    (path / "samples.parquet").unlink()
    row = {
        "system": "quorum",
        "version": "1",
        "endpoint": "Put",
        "outcome": "ok",
        "phase": "measure",
    }
    lines = [
        json.dumps(row | {"seq": n, "start_ns": 10**9 + n * 10**6, "total_ns": 5_000_000})
        for n in range(700)
    ]
    lines[3] = json.dumps(json.loads(lines[3]) | {"outcome": "fail", "error": "</script>"})
    event = {"t_ns": 5, "kind": "ready", "subject": "quorum", "detail": ""}
    (path / "events.jsonl").write_text(json.dumps(event) + "\n")
    status, text = view.ask("live/a%20study")
    assert status == 200 and "connect-src 'self'" in text and Page(text)

    def look() -> dict[str, object]:
        status, text = view.ask("look/a%20study")
        assert status == 200
        found: dict[str, object] = json.loads(text)
        return found

    assert look()["said"] == "running, 0 samples"
    with (path / "samples.jsonl").open("w") as file:
        file.write("\n".join(lines[:10]) + "\n" + lines[10][:20])
        file.flush()
        seen = look()
        assert seen["said"] == "running, 10 samples" and seen["labs"] == [["quorum", "ready"]]
        file.write(lines[10][20:] + "\n" + "\n".join(lines[11:]) + "\n")
        file.flush()
        seen = look()
    (lane,) = seen["strip"]["lanes"]  # type: ignore[index]
    assert (lane["n"], lane["shown"]) == (700, 500)
    assert lane["at"][0] == 200_000 and lane["total"] == 5000 and lane["seq"][-1] == 699
    assert seen["status"] == "running"


@pytest.mark.parametrize("error", [BrokenPipeError(), ConnectionResetError(), TimeoutError()])
def test_a_reader_who_leaves_is_no_error(
    error: Exception, view: View, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        raise error
    except type(error):
        view.server.handle_error(None, ("127.0.0.1", 1))  # type: ignore[arg-type]
    assert capsys.readouterr() == ("", "")


def test_what_the_machine_lacks_is_not_the_bundles_damage(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise ImportError("no such part")

    monkeypatch.setattr("wanlat.analysis.view.server.page_of", fail)
    status, text = view.ask("report/a%20study")
    assert (status, "no such part" in text, "damaged" in text) == (500, True, False)
