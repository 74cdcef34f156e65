"""The checks of `make lint` that are ours: words that say too little, and rooms that grow."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import sizes, words


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("for each in range(3):\n    pass\n", [1]),
        ("def ask(told):\n    pass\n", [1, 1]),
        ("class Model:\n    was_asked: int = 0\n", [2]),
        ('x = 1\n"""What nobody\nsays."""\n', [2, 2]),
        ("import os as of\ntry:\n    pass\nexcept OSError as found:\n    pass\n", [1, 4]),
        ("task = essay = offset = reach = 1  # asked\nprint('told')\n", []),
    ],
)
def test_a_listed_word_is_found_in_names_and_docstrings_alone(
    source: str, lines: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    places = sorted(int(place.split(":")[1]) for place in words.offences(path))
    assert places == lines


def test_a_room_that_grows_is_reported_with_by_how_much(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "known.py").write_text("1\n2\n3\n")
    subprocess.run(["git", "-C", tmp_path, "add", "room"], check=True)
    (tmp_path / "room" / "unknown.py").write_text("4\n")
    lines = {"python": sizes.measure(tmp_path, {"room": 0}, ".py")}
    assert lines == {"python": {"room": 3}}
    assert not sizes.excesses({"python": {"room": 3}}, lines)
    (problem,) = sizes.excesses({"python": {"room": 1}}, lines)
    assert "room/" in problem and "2 more" in problem
