"""What a package installs beside the program, and what the release checks beforehand."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.command_line import CHECKOUT, here, ran
from wanlat.cli import COMMANDS
from wanlat.topologies.version import VERSION


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("share")
    script = CHECKOUT / "tools" / "share.py"
    subprocess.run([sys.executable, str(script), str(directory)], cwd=CHECKOUT, check=True)
    return directory


def test_the_man_page_has_every_command_with_its_options(share: Path) -> None:
    page = (share / "man" / "man1" / "wanlat.1").read_text()
    plain = page.replace(r"\-", "-").replace(r"\e", "\\")
    assert plain.startswith(f'.TH WANLAT 1 "" "wanlat {VERSION}"\n')
    for name in COMMANDS:
        assert f'.SS "wanlat {name}' in plain
    for command in ("run", "compare", "topology export"):
        shown = here(*command.split(), "--help").stdout
        section = plain.split(f'.SS "wanlat {command} ')[1].split("\n.SS")[0].split("\n.SH")[0]
        options = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", shown, re.MULTILINE))
        assert options and options <= set(re.findall(r"--[\w-]+", section)), command
    requests = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert requests == {".TH", ".SH", ".SS", ".PP", ".TP", ".B"}


def test_man_shows_it(share: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed (Debian, Ubuntu: apt-get install groff-base)")
    page = share / "man" / "man1" / "wanlat.1"
    command = ["groff", "-man", "-Tutf8", "-ww", "-P-cbou", str(page)]
    done = ran(*command, check=True)
    assert done.stderr == ""
    assert "wanlat compare [OPTIONS] OLD NEW" in done.stdout
    assert "-h, --help" in done.stdout


def test_bash_loads_its_completion_from_the_file(share: Path) -> None:
    script = share / "bash-completion" / "completions" / "wanlat"
    check = f"source {script} && complete -p wanlat"
    done = ran("bash", "-c", check, check=True)
    assert "_wanlat_completion" in done.stdout
    assert (share / "zsh" / "site-functions" / "_wanlat").read_text().strip().startswith("#compdef")
    assert (share / "fish" / "vendor_completions.d" / "wanlat.fish").stat().st_size > 100


def test_there_is_one_version() -> None:
    cargo = tomllib.loads((CHECKOUT / "Cargo.toml").read_text())
    assert cargo["workspace"]["package"]["version"] == VERSION
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    headings = re.findall(r"^## (\S+)", (CHECKOUT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == VERSION


def test_a_release_stops_where_something_is_not_ready(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", f"file://{CHECKOUT}", clone], check=True
    )
    (clone / ".venv" / "bin").mkdir(parents=True)
    (clone / ".venv" / "bin" / "python").symlink_to(sys.executable)
    script = clone / "tools" / "release"
    shutil.copy(CHECKOUT / "tools" / "release", script)

    def released() -> str:
        done = ran(script, cwd=clone)
        assert done.returncode == 1, done.stdout
        return done.stderr

    def commit() -> None:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *who, "commit", "--quiet", "-am", "x"], cwd=clone, check=True)

    (clone / "README.md").write_text("x")
    assert "the checkout has changes" in released()
    commit()
    assert f"write “## {VERSION} (YYYY-MM-DD)”" in released()
    cargo = clone / "Cargo.toml"
    cargo.write_text(cargo.read_text().replace(f'"{VERSION}"', '"9.9.9"'))
    commit()
    assert f"Cargo.toml has another version than {VERSION}" in released()
