"""What users get wrong: exit code 2, one paragraph that helps, and nothing was started."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import here, write_program
from tests.own_store import DEFINITION
from wanlat import cli
from wanlat.systems import registry

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
    ("trace one-site --system quorum,minio --endpoint PutObject", "one at a time"),
    ("place five-sites --system quorum,minio", "one at a time"),
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


RAW = re.compile(
    r"PosixPath\(|<[\w.]+ (object|at)|dict_(keys|values|items)\(|\bNone(Type)?\b|Input should|"
    r"validation error|\[type=|\[Errno|\b[A-Z][a-z]+[A-Za-z]*\.[A-Z_]{2,}\b|Traceback|"
    r"mistake in wanlat"
)
"""What Python and pydantic call things."""
STRANGE = ["", "-1", "{a}", "[", "a.b={c}", "1,2", "/dev/null", "\u200b"]


def leaves(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The commands of a group, with their words."""
    if not hasattr(command, "commands"):
        yield words, command
        return
    for name, inner in command.commands.items():
        yield from leaves(inner, (*words, name))


def strange(command: Any) -> Iterator[list[str]]:
    """Strange values of each option and argument of a command, one at a time."""
    options = [each for each in command.params if each.param_type_name == "option"]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    usual = ["nowhere" for each in arguments if each.required or each.default is None]
    yield ["--nonesuch"]
    for value in STRANGE:
        for option in options:
            if not option.is_flag:
                yield [*usual, option.opts[0], value]
        for index in range(len(arguments)):
            yield [*usual[:index], value, *usual[index + 1 :]]


@pytest.mark.parametrize("name", [name for name in cli.COMMANDS if name not in ("doctor", "view")])
def test_no_message_is_in_pythons_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, command in leaves(cli.load(name), (name,)):
        for given in strange(command):
            done = here(*words, *given)
            printed = done.stderr
            assert not RAW.search(printed) and done.returncode in (0, 2, 3), (words, given, printed)


@pytest.mark.parametrize("kind", ["study", "drill", "topology"])
def test_a_file_that_may_not_be_read_is_not_called_missing(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("exists", "open"):
        before = getattr(Path, name)

        def refuse(path: Path, *given: Any, before: Any = before, **named: Any) -> Any:
            if path.parent == Path("private"):
                raise PermissionError(errno.EACCES, "Permission denied")
            return before(path, *given, **named)

        monkeypatch.setattr(Path, name, refuse)
    done = here(kind, "validate", "private/x.yaml")
    assert done.returncode == 2
    assert "private/x.yaml: the file cannot be read: Permission denied" in done.stderr


def test_a_system_of_ones_own_is_suggested_by_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_ADOPTED", {})
    (tmp_path / "system.yaml").write_text(DEFINITION)
    done = here("place", "five-sites", "--system", f"{tmp_path}/")
    assert done.returncode == 2
    assert f"`wanlat run round-trips --systems {tmp_path}`" in done.stderr


def test_a_program_without_a_version_is_named_in_words(tmp_path: Path) -> None:
    for program, says in (
        ("echo no such thing >&2; exit 3", "--version` ended with exit code 3: no such thing."),
        ("kill -9 $$", "--version` was ended by SIGKILL."),
        ("#!/nowhere/sh", "No such file or directory."),
    ):
        path = write_program(tmp_path / "garage", program)
        done = here(*LATENCY.split(), "--systems", "garage", WANLAT_GARAGE_BINARY=str(path))
        assert done.returncode == 3 and says in done.stderr, done.stderr
        assert not RAW.search(done.stderr)


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
    assert not RAW.search(done.stderr)
    assert done.stdout == ""
    left = {str(each.relative_to(files)) for each in files.rglob("*") if each.is_file()}
    assert left == FILES.keys(), "nothing was started"


@pytest.mark.parametrize("place", ["topology", "client", "systems", "samples", "seed", "prefill"])
@pytest.mark.parametrize("placeholder", ["{name}", "{{ name }}", "{{name}}", "{ns.name}"])
def test_a_placeholder_is_one_mistake_that_says_so(
    place: str, placeholder: str, tmp_path: Path
) -> None:
    keys = {"name": "mine", "topology": "five-sites", "endpoints": "[GetObject]"}
    keys[place] = f"[{placeholder}]" if place == "systems" else placeholder
    (tmp_path / "x.yaml").write_text("".join(f"{key}: {text}\n" for key, text in keys.items()))
    done = here("study", "validate", str(tmp_path / "x.yaml"))
    line = [*keys].index(place) + 1
    assert done.returncode == 2
    assert done.stderr.count("x.yaml:") == 1 and f"x.yaml:{line}: {place}" in done.stderr
    assert "without quotes is a mapping to YAML" in done.stderr
    assert placeholder.replace(" ", "") in done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: x\ntopology: five-sites\nendpoints: <endpoints>\n", "is a placeholder"),
        ("name: x\ntopology: five-sites\nendpoints: [GetObject]\nseed: <N>\n", "is a placeholder"),
        ("name: x\ntopology: {dir}/a.yaml\nendpoints: [GetObject]\n", "stands in quotes"),
        (
            "name: x\ntopology: five-sites\nendpoints: [GetObject]\nsystems: [{a}:90]\n",
            "`{a}:90` without quotes",
        ),
        ("name: x\nsystems: [{dir}/x]\nendpoints: [GetObject]\n", "stands in quotes"),
    ],
)
def test_so_is_one_in_angle_brackets_or_with_text_behind_it(
    text: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "x.yaml").write_text(text)
    done = here("study", "validate", str(tmp_path / "x.yaml"))
    assert (done.returncode, done.stderr.count("x.yaml:")) == (2, 1)
    assert says in done.stderr


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
