"""Completion: the scripts for shells, real bash, and which names are completed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wanlat.running import in_process
from wanlat.experiments.config.files import shipped as studies
from wanlat.experiments.drill.files import shipped as drills
from wanlat.topologies.load import shipped as topologies

CHECKOUT = Path(__file__).resolve().parents[2]
ASK = {
    "bash": """
        source "$SCRIPT"
        complete -p wanlat | grep -q _wanlat_completion || exit 9
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _wanlat_completion "$1"
        printf '%s\\n' "${COMPREPLY[@]}"
    """,
    "zsh": """
        autoload -Uz compinit; compinit -u -d "$TMPDIR/zcompdump"
        source "$SCRIPT"
        [[ ${_comps[wanlat]} == _wanlat_completion ]] || exit 9
        _arguments() { print -r -- "$2" | tr -d '()"' | tr ' ' '\\n' | sed 's/^:*//; s/:.*//' }
        words=("$@"); CURRENT=$#
        _wanlat_completion
    """,
    "fish": """
        source $SCRIPT
        complete -C (string join " " -- $argv)
    """,
}


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """The directory of a command `wanlat` of this checkout."""
    program = tmp_path / "bin" / "wanlat"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(CHECKOUT)!r})\n"
        "from wanlat.start import main\nmain()\n"
    )
    program.chmod(0o755)
    return program.parent


def completed(shell: str, directory: Path, *words: str) -> list[str]:
    """Return what a shell offers for the last word."""
    script = directory / f"complete.{shell}"
    script.write_text(in_process(["completion", shell]).stdout)
    names = ["-c", ASK[shell], *(["shell"] if shell != "fish" else []), *words]
    plain = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [shell, *plain, *names],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ
        | {
            "PATH": f"{directory}:{os.environ['PATH']}",
            "SCRIPT": str(script),
            "TMPDIR": str(directory),
        },
    )
    assert done.returncode == 0, done.stderr
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", list(ASK))
def test_a_real_shell_completes_commands_and_names(shell: str, command: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert completed(shell, command, "wanlat", "stu") == ["study"]
    assert set(completed(shell, command, "wanlat", "drill", "")) >= {"list", "run", "show"}
    given = completed(shell, command, "wanlat", "run", "endpoint-latency-")
    assert given == ["endpoint-latency-datacenters"]
    assert completed(shell, command, "wanlat", "run", "--systems", "quorum,gar") == [
        "quorum,garage"
    ]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["run", ""], studies()),
        (["study", "show", ""], studies()),
        (["drill", "run", ""], drills()),
        (["drill", "show", "flap"], ["flapping", "flapping-3dc"]),
        (["calibrate", ""], topologies()),
        (["topology", "show", "five"], ["five-sites"]),
        (["run", "endpoint-latency", "--topology", "five"], ["five-sites"]),
        (["run", "endpoint-latency", "--backend", ""], ["netem", "wire"]),
        (["run", "endpoint-latency", "--storage", "m"], ["memory"]),
        (["trace", "five-sites", "--system", "minio"], ["minio", "minio-nginx"]),
        (["system", "install", "gar"], ["garage"]),
        (["drill", "run", "flapping", "--systems", "bob,quo"], ["bob,quorum"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
    ],
)
def test_the_words_that_fit_are_offered(words: list[str], offered: list[str]) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.argv[0] = 'wanlat'; from wanlat.cli import main; main()",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ
        | {
            "_WANLAT_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(["wanlat", *words]),
            "COMP_CWORD": str(len(words)),
        },
    )
    assert done.stdout.split() == offered, done.stderr


@pytest.mark.parametrize("shell", list(ASK))
def test_every_script_asks_wanlat(shell: str) -> None:
    script = in_process(["completion", shell]).stdout
    assert f"_WANLAT_COMPLETE=complete_{shell}" in script
    assert {"bash": "complete -o default -F", "zsh": "compdef", "fish": "--command wanlat"}[
        shell
    ] in script
