"""Systems that are asked over HTTP, or by a program: a store of thirty lines, measured."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.command_line import here, ran, write_program
from tests.experiments.commands import samples_of
from tests.needs import lab_of
from wanlat.commands.system import check
from wanlat.emulator.binaries import SEARCH_PATH
from wanlat.experiments.config.study import Study
from wanlat.systems import registry
from wanlat.systems.engine.definition import DefinitionError, read
from wanlat.topologies.errors import UserError

STORE = f"""#!{sys.executable}
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

if "--version" in sys.argv:
    sys.exit(print("shelf 1.2.3"))
directory, address = sys.argv[1:]


class Shelf(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        open(directory + self.path, "wb").write(body)
        self.answer(201 if self.headers["x-who"] == "wanlat of n1" else 403)

    def do_GET(self):
        try:
            self.answer(200, open(directory + self.path, "rb").read())
        except FileNotFoundError:
            self.answer(404)


ThreadingHTTPServer((address, 8080), Shelf).serve_forever()
"""
CLIENT = """
import base64, hashlib, http.client, sys
from wanlat.systems.program import Fail, serve

shelf = http.client.HTTPConnection(sys.argv[1], 8080)

def ask(method, key, body=None):
    shelf.request(method, "/" + key, body, {"x-who": "wanlat of n1"})
    answer = shelf.getresponse()
    data = answer.read()
    if answer.status >= 400:
        raise Fail(f"http {answer.status}")
    return data

def write(key, value):
    ask("PUT", key, base64.b64decode(value))

def digest(key):
    return {"sha256": hashlib.sha256(ask("GET", key)).hexdigest()}

serve(write=write, read=lambda key: ask("GET", key), digest=digest)
"""
BASE = """
schema: 1
title: Shelf
install: {path: store.py}
version: {match: 'shelf (\\S+)'}
nodes: {min: 1, max: 9}
ports: {http: 8080}
directories: [data]
command: [store.py, "{node.data}", "{node.address}"]
ready: [{name: port, tcp: "{ports.http}"}]
promised: {Read: "0"}
"""
HTTP = """
name: shelf-http
protocol: http
http: {headers: {x-who: "wanlat of {nodes[0].name}"}}
objects_on_disk: data/{key}
endpoints:
  Write: {put: "/{key}", body: "{body}", expect: 201}
  Json: {put: "/{key}", json: {key: "{key}", value: ["{body}", "{seq}"]}, expect: [200, 201]}
  Told: {get: "/{key}", contains: '"{key}"', prepare: {put: "/{key}", json: {key: "{key}"}}}
  Read: {get: "/{key}", response_object: body, prepare: {put: "/{key}", body: "{body}"}}
  Placed: {get: "/{key}", response_object: body, prepare: objects_on_disk}
  Missing: {get: "/none", expect: 404}
"""
EXEC = """
name: shelf-exec
protocol: exec
exec: {command: [python3, "{here}/client.py", "{node.address}"]}
endpoints:
  Write: {op: write, request: {key: "{key}", value: "{body}"}}
  Read:
    op: read
    request: {key: "{key}"}
    response_object: body
    prepare: {op: write, request: {key: "{key}", value: "{body}"}}
  Digest:
    op: digest
    request: {key: "{key}"}
    response_object: sha256
    prepare: {op: write, request: {key: "{key}", value: "{body}"}}
"""


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    write_program(tmp_path / "store.py", STORE)
    (tmp_path / "client.py").write_text(CLIENT)
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        (HTTP, {"Write", "Json", "Told", "Read", "Placed", "Missing"}),
        (EXEC, {"Write", "Read", "Digest"}),
    ],
    ids=["http", "exec"],
)
def test_a_check_makes_each_request(
    shelf: Path, kind: str, asked: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lab_of("one-site"):
        pass  # where there can be none, this skips
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    (shelf / "system.yaml").write_text(BASE + kind)
    done = here("system", "check", str(shelf), "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    found = {each["endpoint"]: each for each in json.loads(done.stdout)}
    assert set(found) == asked
    assert {each["outcome"] for each in found.values()} == {"ok"}
    assert list(scratch.iterdir()) == []


DEAD = "sys.exit(print('no licence', flush=True) or 7)\n"


@pytest.mark.parametrize(
    ("kind", "store"), [(HTTP, DEAD), (HTTP.replace("201}", "299}"), "")], ids=["dead", "refusing"]
)
def test_a_check_that_fails_keeps_every_file_that_it_names(
    shelf: Path, kind: str, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lab_of("one-site"):
        pass
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    begins = "directory, address = sys.argv[1:]\n"
    write_program(shelf / "store.py", STORE.replace(begins, begins + store))
    (shelf / "system.yaml").write_text(BASE + kind)
    done = here("system", "check", str(shelf))
    assert done.returncode == 1, done.stderr
    named = re.findall(rf"{scratch}\S+", done.stderr)
    assert named and all(Path(each).exists() for each in named), done.stderr
    if store:
        logs = [Path(each) for each in named if each.endswith(".log")]
        assert logs and "no licence" in logs[0].read_text()


REPORTS = """
        if self.path == "/config":
            return self.answer(200, b'{"sync_s": 2000000, "mode": "safe"}')
"""
SETTINGS = """
options: {sync: {type: integer, default: 120}}
settings:
  - http: {port: "{ports.http}", path: /config}
    settings:
      sync interval: {read: answer.sync_s, expected: options.sync}
      mode: {read: answer.mode, expected: "'safe'"}
"""


@pytest.mark.parametrize(
    ("settings", "code", "says"),
    [
        (SETTINGS, 1, "sync interval on n1, n2 and n3 is 2000000, and 120 was configured"),
        (SETTINGS.replace(".sync_s", ".sync"), 1, "sync interval on n1, n2 and n3 could not be"),
        (SETTINGS.replace("120", "2000000"), 0, "2 settings read back: all in effect"),
    ],
    ids=["differs", "unread", "same"],
)
def test_a_check_fails_where_a_server_runs_with_another_setting_than_was_meant(
    shelf: Path,
    settings: str,
    code: int,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with lab_of("one-site"):
        pass
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    get = "    def do_GET(self):"
    write_program(shelf / "store.py", STORE.replace(f"{get}\n", get + REPORTS))
    (shelf / "system.yaml").write_text(BASE + HTTP + settings)
    done = here("system", "check", str(shelf), "--json")
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert {answer["outcome"] for answer in json.loads(done.stdout)} == {"ok"}
    assert ("as it was configured: sync interval. " in done.stderr) is bool(code)
    kept = list(scratch.glob("*/bundle/manifest.json"))
    assert bool(kept) is bool(code)
    for manifest in kept:
        (sync, mode) = json.loads(manifest.read_text())["settings"]["shelf-http"]
        assert (sync["as_expected"], mode["as_expected"]) == (False, True)


def test_a_study_measures_it_and_states_what_its_program_takes(shelf: Path) -> None:
    with lab_of("one-site"):
        pass
    (shelf / "system.yaml").write_text(BASE + EXEC)
    bundle = shelf / "bundle"
    run = ["run", "endpoint-latency", "--systems", f"{shelf}/", "--samples", "5"]
    few = ["--topology", "one-site", "--max-network-error", "10s", "--json", "-o", str(bundle)]
    done = here(*run, *few)
    assert done.returncode == 0, done.stderr
    overhead = json.loads((bundle / "manifest.json").read_text())["program_overhead"]["shelf-exec"]
    assert overhead["n"] == 200
    assert 0 < overhead["median_ms"] <= overhead["p99_ms"]
    assert any("own share of each sample" in each for each in json.loads(done.stdout)["notes"])
    rows = samples_of(bundle).query("phase == 'measure'")
    assert set(rows["outcome"]) == {"ok"}
    assert set(rows.groupby("endpoint").size()) == {5}
    # It asks a store that is there, and so takes longer than to do nothing.
    assert rows["total_ns"].median() / 1e6 > overhead["median_ms"]


@pytest.mark.parametrize(("nodes", "count"), [("{max: 1}", 1), ("{min: 5}", 5)])
def test_a_check_starts_as_many_nodes_as_the_store_runs_on(
    shelf: Path, nodes: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepared(study: Study, **_: object) -> None:
        raise UserError(f"{study.nodes} nodes")

    monkeypatch.setattr("wanlat.experiments.check.prepare", prepared)
    (shelf / "system.yaml").write_text(BASE.replace("{min: 1, max: 9}", nodes) + HTTP)
    with pytest.raises(UserError, match=f"^{count} nodes"):
        check(str(shelf))


def test_a_store_of_one_process_is_measured_on_a_shipped_topology(shelf: Path) -> None:
    with lab_of("one-node"):
        pass
    (shelf / "system.yaml").write_text(BASE.replace("{min: 1, max: 9}", "{max: 1}") + HTTP)
    bundle = shelf / "bundle"
    run = ["run", "endpoint-latency", "--systems", f"{shelf}/", "--samples", "5"]
    done = here(*run, "--topology", "one-node", "--max-network-error", "10s", "-o", str(bundle))
    assert done.returncode == 0, done.stderr
    assert set(samples_of(bundle).query("phase == 'measure'")["outcome"]) == {"ok"}
    refused = here(*run, "--topology", "one-site", "--dry-run")
    assert "runs on 1 node and no others here" in refused.stderr


WRONG = """
name: mine
protocol: http
ports: {web: 80}
install: {path: mine}
command: [mine]
exec: {comand: [x]}
endpoints:
  A: {gett: "/{kee}", expct: 200}
  B: {get: "no", put: "/x"}
  C: {get: "/{ky}", response_object: bdy, prepare: objects_on_disc}
  D: {op: x, request: {op: y}}
  E: {post: "/", json: {a: {body}}, body: "x{body}"}
"""


def test_mistakes_in_what_is_asked_are_reported_with_lines(tmp_path: Path) -> None:
    (tmp_path / "system.yaml").write_text("schema: 1" + WRONG)
    with pytest.raises(DefinitionError) as caught:
        read(tmp_path)
    message = str(caught.value)
    for line, part in (
        (7, "did you mean `command`"),
        (9, "did you mean `get`"),
        (9, "did you mean `expect`"),
        (10, "begins with a slash"),
        (11, "did you mean `{key}`"),
        (11, "allowed: body or content-length"),
        (11, "did you mean `objects_on_disk`"),
        (12, "it stands beside `request`"),
        (13, 'write "{body}"'),
        (13, "a text by itself"),
    ):
        assert any(f":{line}:" in row and part in row for row in message.splitlines()), part


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("protocol: htp", "4: protocol: `htp` is no protocol (did you mean `http`?)"),
        ("protocol: http", "`ports` has no `http`"),
        ("protocol: exec", "`exec` is missing"),
        ("protocol: grpc", "`grpc` is missing"),
        ("protocol: http\nports: {http: 1}\nendpoints: {A: {op: x}}", "a request of exec"),
        (
            "protocol: http\nports: {http: 1}\nendpoints: {A: {get: /x, prepare: objects_on_disk}}",
            "`objects_on_disk` is missing",
        ),
    ],
)
def test_a_protocol_has_all_that_it_needs(tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "system.yaml").write_text(f"schema: 1\nname: mine\ncommand: [x]\n{text}\n")
    with pytest.raises(DefinitionError) as caught:
        read(tmp_path)
    assert part in str(caught.value)


def test_a_program_of_ten_lines_answers_and_needs_nothing(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from wanlat.systems.program import Fail, NotFound, serve\n"
        "def no(): raise Fail('never')\n"
        "def gone(): raise NotFound\n"
        "def odd(a): print('aside'); return 1 // a\n"
        "serve(no=no, gone=gone, odd=odd, read=lambda: b'abc', told=lambda **more: more)\n"
    )
    lines = ['{"op":"nothing"}', '{"op":"no"}', '{"op":"odd","a":0}', '{"op":"read"}']
    lines += ['{"op":"told","sha256":"12"}', '{"op":"what"}', '{"op":"odd"}', '{"op":"gone"}']
    where = os.environ | {"PYTHONPATH": str(SEARCH_PATH)}
    done = ran("python3", program, env=where, input="".join(f"{line}\n" for line in lines))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[:2] == [{"ok": True}, {"fail": "never"}]
    assert answers[2]["unknown"].startswith("ZeroDivisionError: ")
    assert answers[3:5] == [{"ok": True, "body": "YWJj"}, {"ok": True, "sha256": "12"}]
    assert "there are nothing, no, gone, odd, read, told" in answers[5]["fail"]
    assert answers[6]["unknown"].startswith("TypeError: ")
    assert answers[7] == {"not_found": "NotFound"}
    assert done.stderr == "aside\n"


def test_what_an_answer_contains_is_said_once(shelf: Path) -> None:
    text = BASE + HTTP.replace("response_object: body,", "response_object: body, contains: x,", 1)
    (shelf / "system.yaml").write_text(text)
    with pytest.raises(DefinitionError, match="contains: "):
        registry.adopt(f"{shelf}/")
