"""A user's own program as a system: how its command is filled in, and one that really runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from systems_doubles import StandInLab, plan_of

from tests.needs import lab_of
from wanlat.emulator.binaries import binary
from wanlat.systems import registry
from wanlat.systems.base import Cluster
from wanlat.systems.engine.cache import Cache, sha256_of
from wanlat.systems.engine.protocols import BOB_PROTO as PROTO
from wanlat.systems.errors import SystemFailed, SystemMissing
from wanlat.topologies.errors import UserError

SERVICE = registry.get("service")


def configure(lab: StandInLab, log_dir: Path, **options: Any) -> Cluster:
    given = SERVICE.parse_options({"command": ["sleep"], **options})
    SERVICE.check_topology(lab.plan, given)
    return SERVICE.configure(lab, given, SERVICE.binary_for(given), log_dir)  # type: ignore[arg-type]


def arguments(lab: StandInLab, log_dir: Path, *given: str, node: str = "n2") -> list[str]:
    cluster = configure(lab, log_dir, command=["sleep", *given], port=7000)
    return list(cluster.nodes[node].argv)[1:]


def test_placeholders_are_the_node_s_own(lab: StandInLab, tmp_path: Path) -> None:
    data = f"{lab.node('n2').directory}/service/data"
    given = ["--name={node}", "{address}:{port}", "{data}/x", "{peers}"]
    assert arguments(lab, tmp_path, *given) == [
        "--name=n2",
        "127.0.1.2:7000",
        f"{data}/x",
        "127.0.1.1:7000,127.0.1.2:7000,127.0.1.3:7000",
    ]
    assert Path(data).is_dir()


def test_an_argument_about_a_peer_is_repeated_for_each(lab: StandInLab, tmp_path: Path) -> None:
    given = ["a", "--peer={peer.node}={peer.address}:{port}@{node}", "z"]
    assert arguments(lab, tmp_path, *given) == [
        "a",
        "--peer=n1=127.0.1.1:7000@n2",
        "--peer=n2=127.0.1.2:7000@n2",
        "--peer=n3=127.0.1.3:7000@n2",
        "z",
    ]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("{{node}}", "{node}"),
        ('{"a": {"b": 1}}', '{"a": {"b": 1}}'),
        ("${HOME} {} {0}", "${HOME} {} {0}"),
        ("awk {{print}}", "awk {print}"),
    ],
)
def test_other_braces_are_left_alone(
    lab: StandInLab, tmp_path: Path, given: str, meant: str
) -> None:
    assert arguments(lab, tmp_path, given) == [meant]


def test_the_environment_has_placeholders_too(lab: StandInLab, tmp_path: Path) -> None:
    cluster = configure(lab, tmp_path, environment={"WHO": "{node}", "MODE": "fast"})
    assert cluster.nodes["n3"].env == {"WHO": "n3", "MODE": "fast"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"command": []}, r"has no command.*options: \{service: \{command"),
        ({"command": ["x", "{nodes}"]}, r"unknown placeholder \{nodes\} \(did you mean `node`"),
        ({"command": ["x", "{print}"]}, r"If the braces are meant, write \{\{print\}\}"),
        ({"command": ["x"], "environment": {"A": "{zzz}"}}, r"unknown placeholder \{zzz\}; there"),
        ({"command": ["x"], "protos": ["no/such.proto"]}, r"no file no/such\.proto"),
        ({"command": ["x"], "includes": ["no/such"]}, r"no directory no/such"),
    ],
)
def test_what_cannot_work_is_said_before_anything_starts(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        SERVICE.check_topology(plan_of(3), SERVICE.parse_options(options))


@pytest.mark.parametrize("wrong", [{"port": 0}, {"port": 70_000}, {"ready": "health"}])
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError, match=f"service: `{next(iter(wrong))}`"):
        SERVICE.parse_options({"command": ["x"], **wrong})


def test_the_program_is_hashed_and_named(tmp_path: Path) -> None:
    program = tmp_path / "greeter"
    program.write_text("#!/bin/sh\n")
    with pytest.raises(SystemMissing, match=r"greeter`, is not a program"):
        SERVICE.binary_for(SERVICE.parse_options({"command": [str(program)]}))
    program.chmod(0o755)
    found = SERVICE.binary_for(SERVICE.parse_options({"command": [str(program)]}))
    assert (found.path, found.version, found.sha256) == (program, "greeter", sha256_of(program))
    options = SERVICE.parse_options({"command": [str(program)], "version": "1.4"})
    assert SERVICE.binary_for(options).version == "1.4"


def test_a_program_that_is_not_there_is_named(cache: Cache) -> None:
    with pytest.raises(SystemMissing, match=r"`no-such-program`, is not on PATH"):
        SERVICE.binary_for(SERVICE.parse_options({"command": ["no-such-program"]}))
    with pytest.raises(SystemMissing, match=r"name your program in the study"):
        SERVICE.find()


def test_where_it_answers_and_what_defines_it(lab: StandInLab, tmp_path: Path) -> None:
    target = configure(lab, tmp_path, protos=[str(PROTO)], port=1234).grpc("n2")
    assert (target.host, target.port) == ("127.0.1.2", 1234)
    assert target.protos == (PROTO,)
    assert target.includes == (PROTO.parent,)
    target = configure(lab, tmp_path, protos=[str(PROTO)], includes=[str(tmp_path)]).grpc("n1")
    assert target.includes == (tmp_path,)


# -- running ----------------------------------------------------------------------------------

LATE = """
import http.server, socket, sys
address, port, answers = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
opened = socket.create_server((address, port))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(answers.pop(0) if len(answers) > 1 else answers[0]))
        self.send_header("Content-Length", "0")
        self.end_headers()
http.server.HTTPServer((address, port + 1), Handler).serve_forever()
"""


def start(lab: StandInLab, log_dir: Path, timeout_s: float = 60, **options: Any) -> list[str]:
    said: list[str] = []
    given = SERVICE.parse_options(options)
    SERVICE.start(lab, given, log_dir, timeout_s, said.append)  # type: ignore[arg-type]
    # A step that takes more than a second is told again, on a busy machine.
    return list(dict.fromkeys(text.partition(":")[0] for text in said))


def test_ready_is_an_open_port_and_a_path_that_answers(lab: StandInLab, tmp_path: Path) -> None:
    command = [sys.executable, "-c", LATE, "{address}", "{port}"]
    assert start(lab, tmp_path, command=[*command, "503"], port=7300) == ["port"]
    lab.close()
    steps = start(
        lab,
        tmp_path,
        command=[*command, "503", "503", "200"],
        port=7300,
        ready="/ready",
        ready_port=7301,
    )
    assert steps == ["port", "ready"]


def test_ready_may_be_a_line_that_is_printed(lab: StandInLab, tmp_path: Path) -> None:
    program = (
        "import socket, sys, time; s = socket.create_server((sys.argv[1], 7303));"
        "print('starting', flush=True); time.sleep(0.5); print('INFO all set', flush=True);"
        "time.sleep(60)"
    )
    given = {"command": [sys.executable, "-c", program, "{address}"], "port": 7303}
    assert start(lab, tmp_path / "a", **given, ready_line="all set")[-1] == "line"
    lab.close()
    with pytest.raises(SystemFailed, match=r"waiting for: line.*has not printed `at last`"):
        start(lab, tmp_path / "b", 5, **given, ready_line="at last")


def test_a_program_that_never_listens_is_told_with_its_log(lab: StandInLab, tmp_path: Path) -> None:
    program = "import time; print('waiting for godot', flush=True); time.sleep(60)"
    with pytest.raises(SystemFailed) as caught:
        start(lab, tmp_path, 8, command=[sys.executable, "-c", program], port=7302)
    assert "not ready after 8 s, waiting for: port" in str(caught.value)
    assert "waiting for godot" in str(caught.value)


# The example of docs/systems.md: the reference store, run as if it were anybody's program.
QUORUM = [
    *("serve", "--name={node}", "--data={data}", "--s3={address}:9000"),
    *("--peer-listen={address}:9001", "--peer={peer.node}={peer.address}:9001"),
    *("--protocol=leaderless", "--access-key=key", "--secret-key=secret"),
    *("--bob={address}:{port}", "--vdisk=n1,n2,n3"),
]


def test_a_real_program_runs_and_is_called_by_its_proto(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools")
    from lab_bob import body_of, calls, key, put

    options = SERVICE.parse_options(
        {
            "command": [str(binary("quorum")), *QUORUM],
            "port": 20000,
            "protos": [str(PROTO)],
            "ready": "/healthz",
            "ready_port": 9002,
            "ready_line": "ready",
        }
    )
    with lab_of("one-site") as lab:
        SERVICE.check_topology(lab.plan, options)
        cluster = SERVICE.start(lab, options, tmp_path, 60, print)
        assert cluster.api == "grpc"
        assert cluster.replicas(bytes(8)) is None
        name = bytes(8)
        answers = calls(
            cluster, "n1", [("n2", "Put", put(name, b"mine")), ("n3", "Get", {"key": key(name)})]
        )
        assert body_of(answers[1]) == b"mine"
    recorded = json.loads(json.dumps(cluster.options))
    assert recorded["port"] == 20000
    assert recorded["command"][1:] == QUORUM
