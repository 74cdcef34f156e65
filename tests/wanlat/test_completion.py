"""Completion: the scripts for shells, real bash, and which names are completed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.command_line import CHECKOUT, here, ran, write_program
from tests.needs import needs
from wanlat.experiments.config.files import shipped as studies
from wanlat.experiments.drill.files import shipped as drills
from wanlat.topologies.load import shipped as topologies

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
        _arguments() { print -r -- "${1#*: :}" | tr -d '()' | sed 's/"\\([^"]*\\)".*/\\1/' }
        words=("$@"); CURRENT=$#
        _wanlat_completion
    """,
    "fish": """
        source $SCRIPT
        complete -C (string join " " -- $argv)
    """,
}
PLAIN = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}
REGISTERS = {"bash": "complete -o default -F", "zsh": "compdef", "fish": "--command wanlat"}


@pytest.mark.parametrize(
    "shell", ["bash", *(pytest.param(each, marks=pytest.mark.programs) for each in ("zsh", "fish"))]
)
def test_a_real_shell_completes_commands_and_names(shell: str, tmp_path: Path) -> None:
    script = here("completion", shell).stdout
    assert f"_WANLAT_COMPLETE=complete_{shell}" in script and REGISTERS[shell] in script
    if shell != "bash":
        needs(shell)
    (tmp_path / "script").write_text(script)
    write_program(
        tmp_path / "wanlat",
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(CHECKOUT)!r})\n"
        "from wanlat.start import main\nmain()\n",
    )
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SCRIPT": str(tmp_path / "script")}
    for words, offered in (
        (["wanlat", "stu"], ["study"]),
        (["wanlat", "run", "--systems", "quorum,gar"], ["quorum,garage"]),
    ):
        first = ["x"] if shell != "fish" else []
        asks = [shell, *PLAIN[shell], "-c", ASK[shell], *first, *words]
        done = ran(*asks, check=True, env={**os.environ, **path, "TMPDIR": str(tmp_path)})
        assert [line.split("\t")[0] for line in done.stdout.splitlines()] == offered


def test_the_words_that_fit_are_offered() -> None:
    expected = {
        "run ": studies(),
        "study show ": studies(),
        "drill run ": drills(),
        "calibrate ": topologies(),
        "topology show five": ["five-sites"],
        "run endpoint-latency --topology five": ["five-sites"],
        "run endpoint-latency --backend ": ["netem", "wire"],
        "trace five-sites --system minio": ["minio", "minio-nginx"],
        "system install gar": ["garage"],
        "drill run flapping --systems bob,quo": ["bob,quorum"],
        "completion ": ["bash", "zsh", "fish"],
    }
    offered = {}
    for words in expected:
        given = f"wanlat {words}"
        asked = {"COMP_WORDS": given, "COMP_CWORD": str(given.count(" "))}
        offered[words] = here(_WANLAT_COMPLETE="complete_bash", **asked).stdout.split()
    assert offered == expected
