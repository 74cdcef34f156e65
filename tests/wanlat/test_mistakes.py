"""What users get wrong: exit code 2, one paragraph that helps, and nothing was started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.command_line import here, write_program

FILES = {
    "crowd.yaml": "name: crowd\nsites: [{name: dc1, nodes: 65}]\nlinks: {}\n",
    "bad.yaml": "name: bad\nsites: []\n",
    "on-bad.yaml": "name: mine\ntopology: bad.yaml\nendpoints: [GetObject]\n",
    "on-mars.yaml": "name: mine\ntopology: mars\nendpoints: [GetObject]\n",
    "of-bob.yaml": "name: mine\ntopology: five-sites\nendpoints: [Put, Get]\n",
    "three.yaml": (
        "name: mine\ntopology: five-sites\nendpoints: [GetObject, GetObjekt]\nsamples: -1\n"
        "smaples: 3\n"
    ),
    "names.yaml": (
        "name: mine\ntopology: five-sites\nendpoints: [GetObject]\nsystems: [quorum, minoi]\n"
        "client: dc9\ntarget: n9\noptions: {quorum: {protocl: leader}}\n"
    ),
    "varied.yaml": (
        "name: mine\ntopology: five-sites\nendpoints: [GetObject]\n"
        "matrix: {client: [dc1, dc9], samples: [3, 4]}\n"
    ),
    "full/precious": "data",
}
LATENCY = "run endpoint-latency"
TRACE = "trace three-datacenters --system quorum --endpoint"
DRILL = "drill run one-node-killed --systems quorum"
MISTAKES = [
    ("frobnicate", "frobnicate"),
    ("completion tcsh", "bash"),
    ("system install ceph", "garage"),
    ("system check mystore", "one of your own is given by its directory, such as ./mystore/"),
    ("system new 9lives", "`9lives` cannot be the name of a system: that is at most 40 lower-case"),
    ("system new garage", "There is a system `garage` already"),
    ("system new mine --protocol htp", "did you mean `http`"),
    ("system show garag", "did you mean `garage`"),
    ("topology show fife-sites", "five-sites"),
    ("calibrate nowhere", "no topology named"),
    ("calibrate five-sites --backend magic", "netem"),
    ("calibrate five-sites --rtt 10ms --jitter 50ms", "jitter"),
    ("calibrate one-site --chart x.jpg", "must end in"),
    ("calibrate one-site --chart nowhere/x.png", "no directory"),
    ("lab exec one-site n99 -- true", "n99"),
    ("lab exec --lab x --rtt 5ms n1 -- true", "--rtt cannot count"),
    ("lab exec --capture new one-site n1 -- true", "no WAN link"),
    ("capture table /etc/passwd", "not a whole record"),
    ("study show endpoint-latensy", "did you mean `endpoint-latency`"),
    ("study validate on-mars.yaml", "mars"),
    *(("study validate names.yaml", f"names.yaml:{n}:") for n in (4, 5, 6, 7)),
    (
        "study validate varied.yaml",
        "varied.yaml:4: matrix: client dc9, samples 3: `dc9` is no node",
    ),
    *(
        (f"{how} three.yaml", f"three.yaml:{n}:")
        for how in ("run", "study validate")
        for n in (3, 4, 5)
    ),
    ("run endpoint-latensy", "endpoint-latency"),
    ("run of-bob.yaml", "System quorum has none of the endpoints of study mine (Put and Get)"),
    ("run on-bad.yaml", "bad.yaml:2"),
    (f"{LATENCY} --topology crowd.yaml", "65"),
    (f"{LATENCY} --out full", "not empty"),
    (f"{LATENCY} --systems service", "command"),
    (f"{LATENCY} --client mars", "dc1"),
    (f"{LATENCY} --rtt 50", "--rtt"),
    (f"{LATENCY} --rtt 1ms --jitter 5ms", "jitter"),
    ("run round-trips --rtt 50ms", "--set round_trips.rtts="),
    ("run round-trips --set round_trips.rtts=0ms,9ms,1s", "in brackets it is one: [0ms,9ms,1s]"),
    (f"{LATENCY} --option quorum", "SYSTEM.KEY=VALUE"),
    (f"{LATENCY} --option quorum.apy=bob", "did you mean `api`"),
    (f"{LATENCY} --option quorum.api={{", "YAML"),
    (f"{LATENCY} --option garage.a=1", "garage is not measured"),
    (f"{LATENCY} --option quorum.api=s3 --option quorum.api=bob", "given twice"),
    (f"{LATENCY} --bobd /bin/sh", "bob is not measured"),
    (f"{LATENCY} --systems bob --bobd /etc/passwd", "executable"),
    (
        f"{LATENCY} --samples many",
        "'--samples': a whole number is wanted here, not the text `many`",
    ),
    (f"{LATENCY} --samples 0", "'--samples': `0` is too small; at least 1"),
    (f"{LATENCY} --storage disc", "'--storage': 'disc' is not one of 'memory', 'disk'."),
    (f"{LATENCY} --samples 3 --set samples=4", "do one of them"),
    (f"{LATENCY} --set nodes=2", "fewer than topology"),
    (f"{LATENCY} --set samples", "it is written PARAMETER=VALUE, such as `samples=20`"),
    (f"{LATENCY} --set prefill..objects=3", "it is written PARAMETER=VALUE"),
    (f"{LATENCY} --set samples=1 --set samples=2", "`samples` is given twice"),
    (f"{LATENCY} --set load={{", "not valid YAML"),
    *((f"{LATENCY} --set samples={deep * 2000}", "nested too deeply") for deep in "[{"),
    (f"{LATENCY} --option quorum.api={'[' * 2000}", "nested too deeply"),
    (f"{LATENCY} --set samples={'9' * 5000}", "samples:"),
    ("view /dev/null", "no directory"),
    (f"system show {'a' * 5000}", "There is no system"),
    (f"{LATENCY} --matrix nodes=", "it has no values"),
    (f"{LATENCY} --matrix nodes=5,2", "nodes-2: nodes: 2 is fewer"),
    (f"{LATENCY} --matrix nods=1", "did you mean `nodes`"),
    (f"{LATENCY} --capture --capture-limit 1KiB", "64KiB"),
    (f"{LATENCY} --capture --capture-snap 8B", "headers"),
    (f"{LATENCY} --capture --topology one-site", "no WAN link"),
    ("run --resume nowhere", "is not a bundle"),
    ("run --resume b --rtt 5ms --dry-run", "--rtt and --dry-run cannot count"),
    (f"{TRACE} PutObjct", "`PutObject`"),
    (f"{TRACE} GetObject --placement local", "nobody can tell"),
    (f"{TRACE} PutObject --bundle x", "TOPOLOGY cannot count"),
    ("trace three-datacenters --system quorum", "--endpoint is missing"),
    ("trace --system quorum --endpoint PutObject", "wanlat trace TOPOLOGY"),
    ("trace one-site --system quorum --endpoint PutObject", "no WAN link"),
    ("drill run one-node-kiled", "did you mean `one-node-killed`?"),
    ("drill run one-node-killed", "--systems quorum"),
    ("drill run one-node-killed --systems service", "`service` does not say how"),
    ("drill run leader-killed --systems minio", "`minio` has no leader as it is set up here"),
    (f"{DRILL},quorum", "given twice"),
    (f"{DRILL} --scale 0.001", "too short"),
    ("drill run partition-two-two --systems quorum --topology one-site", "shares the WAN links"),
    (f"{DRILL} --set objcts=60", "did you mean `objects`?"),
    (f"{DRILL} --set clients.victim.node=n9", "clients.victim.node: `n9`"),
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "full").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("command", "says"), MISTAKES)
def test_a_users_mistake_is_code_2_and_a_paragraph(files: Path, command: str, says: str) -> None:
    done = here(*command.split())
    assert done.returncode == 2, done.stderr
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    left = {str(each.relative_to(files)) for each in files.rglob("*") if each.is_file()}
    assert left == FILES.keys(), "nothing was started"


def test_all_mistakes_of_a_drill_are_reported_with_their_lines(tmp_path: Path) -> None:
    text = here("drill", "show", "one-node-killed").stdout
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    assert here("drill", "validate", str(file)).returncode == 0
    file.write_text(text + "fautls: []\nmore: 3\n")
    done = here("drill", "validate", str(file))
    assert done.returncode == 2
    lines = len(text.splitlines())
    assert f"{file}:{lines + 1}:" in done.stderr and f"{file}:{lines + 2}:" in done.stderr


@pytest.mark.parametrize(
    ("command", "environment", "says"),
    [
        (LATENCY, {"WANLAT_BIN_DIR": "."}, "make build"),
        ("doctor --json", {"WANLAT_BIN_DIR": "."}, "make build"),
        (
            f"{LATENCY} --systems garage --out b",
            {"WANLAT_CACHE": "empty", "PATH": "/usr/bin:/bin"},
            "wanlat system install garage",
        ),
        (
            f"{LATENCY} --systems garage,minio --out b",
            {"WANLAT_CACHE": "empty", "PATH": "/usr/bin:/bin"},
            "wanlat system install garage\nminio",
        ),
        (f"{LATENCY} --systems bob --bobd ./bobd", {}, "bobd"),
        # Of two that cannot both be had, the first is not started either.
        (f"{DRILL},bob --out b", {"WANLAT_BOB_BINARY": "/nowhere/bobd"}, "bob"),
    ],
)
def test_what_the_machine_lacks_is_code_3_and_how_to_get_it(
    files: Path, command: str, environment: dict[str, str], says: str
) -> None:
    for name, prints in (("bobd", "something else"), ("lsof", "")):  # the latter a real one needs
        write_program(files / name, f"echo {prints}")
    path = {"PATH": f"{files}:{os.environ['PATH']}"}
    done = here(*command.split(), **{**path, **environment})
    assert done.returncode == 3, done.stderr
    assert says in done.stderr
    assert not (files / "b").exists()
