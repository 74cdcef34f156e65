"""The lines of each room, of which `tools/sizes.toml` has the most that there may be.

python -m tools.sizes: prints every room that has more, and by how much, and exits 1 where one has.
With --lower it writes what rooms have now where that is less; a number is raised by hand, in the
commit that states what capability it buys.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

LIMITS = Path(__file__).with_name("sizes.toml")
SUFFIXES = {"python": ".py", "rust": ".rs"}
HEAD = """# The most lines that a room may have (`python -m tools.sizes`). A number rises only in
# the commit that states what capability it buys; `--lower` lowers all that may be lower.
"""

Sizes = Mapping[str, Mapping[str, int]]
"""Lines by language and room."""


def measure(root: Path, rooms: Mapping[str, object], suffix: str) -> dict[str, int]:
    """Return how many lines the files of each room have that git knows, by the room's name.

    Raises CalledProcessError where `root` is no checkout.
    """
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    lines = dict.fromkeys(rooms, 0)
    for name in listed.stdout.split("\0"):
        room, path = name.partition("/")[0], root / name
        if name.endswith(suffix) and room in lines and path.is_file():
            lines[room] += path.read_bytes().count(b"\n")
    return lines


def excesses(limits: Sizes, sizes: Sizes) -> list[str]:
    """Return a sentence for each room that has more lines than it may."""
    return [
        f"{room}/ has {sizes[language][room]} lines of {language}: "
        f"{sizes[language][room] - limit} more than the {limit} of tools/sizes.toml."
        for language, rooms in limits.items()
        for room, limit in rooms.items()
        if sizes[language][room] > limit
    ]


def written(sizes: Sizes) -> str:
    """Return the text of `sizes.toml`."""
    tables = [
        "\n".join([f"\n[{language}]", *(f"{room} = {lines}" for room, lines in rooms.items())])
        for language, rooms in sizes.items()
    ]
    return HEAD + "\n".join(tables) + "\n"


def main() -> int:
    """Compare, or lower."""
    parser = argparse.ArgumentParser(prog="python -m tools.sizes")
    parser.add_argument("--lower", action="store_true", help="Write smaller numbers.")
    arguments = parser.parse_args()
    limits = tomllib.loads(LIMITS.read_text())
    root = LIMITS.parents[1]
    sizes = {name: measure(root, rooms, SUFFIXES[name]) for name, rooms in limits.items()}
    if arguments.lower:
        lower = {
            language: {room: min(limit, sizes[language][room]) for room, limit in rooms.items()}
            for language, rooms in limits.items()
        }
        LIMITS.write_text(written(lower))
        return 0
    problems = excesses(limits, sizes)
    for problem in problems:
        print(problem)
    if problems:
        print("Make room, or raise the number in the commit that states what capability it buys.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
