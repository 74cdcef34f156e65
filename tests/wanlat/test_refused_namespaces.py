"""A machine that refuses namespaces: every command that needs a lab says so, with exit code 3.

The kernel refuses them for real, within a user namespace of the test's own; all commands run in
one process there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import CHECKOUT, here, write_program
from tests.needs import machine_lacks_a_lab

STUDY = """
name: test
topology: one-site
nodes: 1
endpoints: [GetObject]
samples: 5
warmup: 2
"""
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from tests.command_line import CHECKOUT, here, write_program
done = [here(*command) for command in json.loads(sys.argv[2])]
print(json.dumps([[each.returncode, each.stderr] for each in done]))
"""
DRILL = "drill run one-node-killed --systems quorum"


@pytest.fixture(autouse=True)
def _namespaces() -> None:
    if machine_lacks_a_lab():
        pytest.skip("no namespace to refuse namespaces in")


def refused(limit: str, directory: Path, *commands: str) -> list[tuple[int, str]]:
    """Run commands in a directory where a limit (`user=0`) of namespaces is in force."""
    name, value = limit.split("=")
    (directory / "study.yaml").write_text(STUDY)
    (directory / "matrix.yaml").write_text(STUDY + "matrix: {object_size: [1KiB, 2KiB]}\n")
    words = json.dumps([command.split() for command in commands])
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "sh", "-c"),
            f'echo {value} >/proc/sys/user/max_{name}_namespaces && exec "$@"',
            *("sh", sys.executable, "-c", PROGRAM, str(CHECKOUT), words),
        ],
        cwd=directory,
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    return [(code, said) for code, said in json.loads(done.stdout)]


COMMANDS = (
    *("run study.yaml", "run study.yaml --out bundle", "run matrix.yaml"),
    *(DRILL, "calibrate one-site"),
    "trace five-sites --system quorum --endpoint PutObject --out bundle",
)


@pytest.mark.parametrize(
    ("limit", "says", "commands"),
    [
        ("user=0", "sudo sysctl -w user.max_user_namespaces", COMMANDS),
        ("mnt=0", "wanlat doctor", COMMANDS[:1]),  # by the supervisor, and not by the guard
        # Too large for the limit.
        ("net=6", "the limit (user.max_net_namespaces) is 6", ("run study.yaml --set nodes=4",)),
    ],
)
def test_it_is_told_and_nothing_is_left(
    limit: str, says: str, commands: tuple[str, ...], tmp_path: Path
) -> None:
    for command, (code, said) in zip(commands, refused(limit, tmp_path, *commands), strict=True):
        assert code == 3, f"{command}: {said}"
        assert says in said and "Traceback" not in said, command
    assert {each.name for each in tmp_path.iterdir()} == {"study.yaml", "matrix.yaml"}


def test_a_bundle_to_resume_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = tmp_path / "study.yaml"
    text = "samples: 5\nready_timeout: 1s\nmatrix: {warmup: [1]}"
    study.write_text(STUDY.replace("samples: 5", text))
    program = "[ $1 = --version ] && echo 'quorum 9' && exit\nexec sleep 600"
    hangs = write_program(tmp_path / "quorum", program)
    bundle = tmp_path / "bundle"
    monkeypatch.setenv("WANLAT_QUORUM_BINARY", str(hangs))
    begun = here("run", str(study), "--out", str(bundle))
    assert begun.returncode == 1, begun.stderr
    before = contents(bundle)
    ((code, said),) = refused("user=0", tmp_path, "run --resume bundle")
    assert code == 3, said
    assert contents(bundle) == before


def contents(directory: Path) -> dict[str, bytes]:
    files = [each for each in directory.rglob("*") if each.is_file()]
    return {str(each.relative_to(directory)): each.read_bytes() for each in files}
