"""The command, on the reference store: real clients, real packets, 100 ms apart."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.late_network import command
from tests.wanlat.test_cli import wanlat
from wanlat.probes.independent import catalogue
from wanlat.topologies.errors import MachineError

pytestmark = pytest.mark.minutes

SAMPLES = 8
THREE_SITES = (
    "name: three\nsites: [{name: a, nodes: [n1]}, {name: b, nodes: [n2]}, {name: c, nodes: [n3]}]\n"
    "links: {default: {rtt: 100ms, jitter: 20ms}}\n"
)
"""With jitter, which the command is to switch off."""


@pytest.fixture
def three(tmp_path: Path) -> str:
    file = tmp_path / "three.yaml"
    file.write_text(THREE_SITES)
    return str(file)


def crosscheck(three: str, *arguments: str, code: int = 0) -> dict[str, Any]:
    done = subprocess.run(
        command("crosscheck", three, "--samples", str(SAMPLES), "--json", *arguments),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == code, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    for entry in document["comparisons"]:
        for one in entry["explained_by"]:
            assert one["text"] in done.stderr
    return document


def entry_of(document: dict[str, Any], endpoint: str, client: str) -> dict[str, Any]:
    (entry,) = (
        entry
        for entry in document["comparisons"]
        if (entry["endpoint"], entry["client"]) == (endpoint, client)
    )
    assert (entry["n"], entry["failed"]) == (SAMPLES, 0)
    return dict(entry)


def kinds(entry: dict[str, Any]) -> set[tuple[str, str]]:
    return {(one["kind"], one["what"]) for one in entry["explained_by"]}


def test_the_sdks_agree_but_for_a_round_trip_that_is_named(three: str) -> None:
    pytest.importorskip("boto3")
    pytest.importorskip("minio")
    document = crosscheck(three, "--endpoint", "PutObject,GetObject")
    for endpoint, client in (
        ("GetObject", "boto3"),
        ("GetObject", "minio-py"),
        ("PutObject", "minio-py"),
    ):
        entry = entry_of(document, endpoint, client)
        assert entry["verdict"] == "agree", entry
        assert abs(entry["extra_round_trips"]) < 0.5
    put = entry_of(document, "PutObject", "boto3")
    assert put["verdict"] == "explained"
    assert put["extra_round_trips"] == pytest.approx(1, abs=0.5)
    assert kinds(put) == {("continue", "")}
    assert "Expect: 100-continue" in put["explained_by"][0]["text"]
    assert put["explained_by"][0]["requests"] == SAMPLES
    assert document["verdict"] == "explained"


def test_grpc_clients_agree_but_for_their_connections(three: str) -> None:
    pytest.importorskip("grpc")
    pytest.importorskip("hpack")
    option = ("--option", "quorum.api=bob", "--endpoint", "Put,Get,Ping")
    document = crosscheck(three, *option)
    names = {client["name"] for client in document["clients"]}
    assert "grpcio" in names
    for endpoint in ("Put", "Get", "Ping"):
        entry = entry_of(document, endpoint, "grpcio")
        assert entry["verdict"] == "agree", entry
        if "grpcurl" in names:
            entry = entry_of(document, endpoint, "grpcurl")
            assert entry["verdict"] == "explained", entry
            assert entry["extra_round_trips"] == pytest.approx(2, abs=0.5)
            assert kinds(entry) >= {("connect", ""), ("settings", "")}
    (first,) = (each["first_request"] for each in document["clients"] if each["name"] == "grpcio")
    assert any("opens a new connection" in text for text in first)


PLANTED = '''
"""A client that a user would not want: a new one for each request, with nothing remembered."""

import io, minio, urllib3
from wanlat.probes.independent.serve import IndependentClient, body_of, nothing_to_check, serve

class Forgetful(IndependentClient):
    name, version, configured = "forgetful", "1", "made anew for each request, without a region"

    def __init__(self, at):
        self.at = at

    def prepare(self, request):
        data = body_of(request)
        def call():
            pool = urllib3.PoolManager(retries=urllib3.Retry(0))
            s3 = minio.Minio(
                f"{self.at['host']}:{self.at['port']}", self.at["access_key"],
                self.at["secret_key"], secure=False, http_client=pool,
            )
            s3.put_object(request["bucket"], request["key"], io.BytesIO(data), len(data))
            pool.clear()
        return call, nothing_to_check

serve(Forgetful)
'''

IDLE = '''
"""A client that idles for 70 ms where the store is far away: no packet says why."""

import io, socket, time, minio, urllib3
from wanlat.probes.independent.serve import IndependentClient, body_of, nothing_to_check, serve

class Idle(IndependentClient):
    name, version, configured = "idle", "1", "idles"

    def __init__(self, at):
        began = time.monotonic()
        socket.create_connection((at["host"], at["port"])).close()
        self.idle_s = 0.07 if time.monotonic() - began > 0.05 else 0
        pool = urllib3.PoolManager(retries=urllib3.Retry(0))
        self.s3 = minio.Minio(
            f"{at['host']}:{at['port']}", at["access_key"], at["secret_key"],
            region=at["region"], secure=False, http_client=pool,
        )

    def prepare(self, request):
        data = body_of(request)
        def call():
            self.s3.put_object(request["bucket"], request["key"], io.BytesIO(data), len(data))
            time.sleep(self.idle_s)
        return call, nothing_to_check

serve(Idle)
'''


def test_a_planted_disagreement_is_named_and_one_without_a_reason_is_not_explained(
    three: str, tmp_path: Path
) -> None:
    pytest.importorskip("minio")
    for name, text in (("forgetful", PLANTED), ("idle", IDLE)):
        (tmp_path / f"{name}.py").write_text(text)
    programs = ",".join(str(tmp_path / f"{name}.py") for name in ("forgetful", "idle"))
    document = crosscheck(three, "--endpoint", "PutObject", "--client", programs, code=1)
    forgetful = entry_of(document, "PutObject", "forgetful")
    assert forgetful["verdict"] == "explained", forgetful
    assert kinds(forgetful) == {("connect", ""), ("answer", "GetBucketLocation")}
    idle = entry_of(document, "PutObject", "idle")
    assert idle["verdict"] == "unexplained", idle
    assert idle["reason"]
    assert document["verdict"] == "unexplained"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["five-sites", "--client", "boto4"], "boto3"),
        (["five-sites", "--client", "grpcio"], "boto3"),
        (["five-sites", "--client", "/nowhere/client"], "/nowhere/client"),
        (["five-sites", "--client", "boto3,boto3"], "same name"),
        (["five-sites", "--endpoint", "PutObjekt"], "PutObject"),
        (["five-sites", "--endpoint", "Ping"], "PutObject"),
        (["five-sites", "--system", "quorun"], "quorum"),
        (["five-sites", "--option", "api"], "quorum.api=bob"),
        (["five-sites", "--rtt", "1ms"], "1 ms apart"),
        (["one-site"], "two"),
        (["mars"], "mars"),
    ],
)
def test_a_users_mistake_ends_with_code_2_and_the_way_out(arguments, says):
    done = wanlat("crosscheck", *arguments)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_without_grpcurl_the_command_says_what_installs_it(tmp_path):
    done = wanlat(
        *("crosscheck", "--option", "quorum.api=bob", "--client", "grpcurl"),
        WANLAT_CACHE=str(tmp_path / "empty"),
        PATH="/usr/bin:/bin",
    )
    assert done.returncode == 3, done.stderr
    assert "wanlat systems install grpcurl" in done.stderr


def test_without_its_package_a_client_says_what_installs_it(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, package=None: None if name == "minio" else real(name, package),
    )
    with pytest.raises(MachineError, match=r"minio.*make setup"):
        catalogue.named("minio-py").check()
    assert "minio-py" not in [program.name for program in catalogue.speaking("s3")]
