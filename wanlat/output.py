"""Where the command line writes: people read stderr, scripts read one JSON document on stdout."""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.streams import not_waiting
from wanlat.topologies import unforeseen
from wanlat.topologies.errors import UserError, way_out_of_machine

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH = 120  # of logs and pipes, which have no width of their own
_BEGINNING = 1000
_JUNIT = re.compile(rb"\s*(<\?xml[^>]*\?>\s*)?(<testsuites[\s/>]|\Z)")
_FIGURES = re.compile(r"|–|[?0-9].*")
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_volume = {"level": 0}  # below 0: quiet; above: verbose


def be_quiet(wanted: bool) -> None:
    """Leave out progress and remarks from now on, or not; the results and errors stay."""
    _volume["level"] = -1 if wanted else max(_volume["level"], 0)


def be_verbose(wanted: bool) -> None:
    """Print more from now on, or not."""
    _volume["level"] = 1 if wanted else min(_volume["level"], 0)


def is_verbose() -> bool:
    """Whether the user wants to read more."""
    return _volume["level"] > 0


def is_quiet() -> bool:
    """Whether the user wants results and errors alone."""
    return _volume["level"] < 0


@cache
def people() -> Console:
    """Return the console for everything that people read."""
    from rich.console import Console  # which takes a while to be imported
    from rich.segment import Segment

    class Plain(Console):
        """One that passes on no control character of what it is given: a bundle may hold any."""

        def render(self, *given: Any, **named: Any) -> Iterator[Segment]:
            for text, style, control in super().render(*given, **named):
                yield Segment(text if control else printed(text), style, control)

    width = None if sys.stderr.isatty() else _PIPE_WIDTH
    return Plain(stderr=True, highlight=False, width=width)


def printed(text: str) -> str:
    r"""The text with what a terminal obeys as in JSON, such as \u001b; not ends of lines."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def emit(document: Any) -> None:
    """Print the one JSON document of a ``--json`` command."""
    text = json.dumps(document, indent=2, ensure_ascii=not _prints_unicode(), allow_nan=False)
    sys.stdout.write(f"{printed(text)}\n")
    sys.stdout.flush()


def _prints_unicode() -> bool:
    """Whether standard output takes any character, as JSON and YAML may hold it."""
    return (sys.stdout.encoding or "utf-8").lower().startswith("utf")


def refuse_to_replace(paths: Iterable[Path], *, force: bool) -> None:
    """Raise UserError where a file is there that is about to be written, unless ``force``."""
    there = [] if force else [path for path in paths if os.path.lexists(path)]
    if there:
        raise UserError(f"{there[0]} exists; --force replaces it.")


def append(path: Path, text: str) -> None:
    """Write to the end of a file that the user named. Raises UserError."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(printed(text))
    except OSError as error:
        raise unwritable(path, error) from error


def replace_junit(path: Path, text: str) -> None:
    """Write a report for a CI, in one step, in place of the one before. Raises UserError.

    A file of another kind is not replaced, and a link is not followed.
    """
    try:
        if path.is_symlink() or (path.exists() and not _is_junit(path)):
            raise UserError(f"{path} is another file, which would be lost. Name a new one.")
        partial = path.with_name(f".{secrets.token_hex(8)}.partial")
        try:
            with partial.open("x", encoding="utf-8") as file:
                file.write(printed(text))
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def _is_junit(path: Path) -> bool:
    """Whether a file is a report for a CI, or empty."""
    if not path.is_file():
        return False
    with path.open("rb") as before:
        return _JUNIT.match(before.read(_BEGINNING)) is not None


def unwritable(path: Path, error: OSError) -> UserError:
    """Return the error for a file that the user named and that cannot be written."""
    way_out = way_out_of_machine(error) or "Name another."
    return UserError(f"{path} cannot be written: {error.strerror}. {way_out}")


def print_table(
    titles: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    indent: str = "",
    to: Callable[[str], object] = print,
) -> None:
    """Print rows under their titles (none: without any), columns of figures to the right.

    ``to`` takes a line: ``print``, or ``inform`` for what is no result.
    """
    texts = [tuple(map(str, row)) for row in rows]
    figures = [all(map(_FIGURES.fullmatch, column)) for column in zip(*texts, strict=True)]
    texts = [*([tuple(titles)] if titles else []), *texts]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        cells = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, figures or [False] * len(row), strict=True)
        ]
        to(indent + "  ".join(cells).rstrip())


def show_list(entries: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print what there is of one kind, as JSON or as a table of the same."""
    if as_json:
        emit(entries)
    elif entries:
        titles = [key.replace("_", " ").upper() for key in entries[0]]
        print_table(titles, [[_cell(value) for value in entry.values()] for entry in entries])


def _cell(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_cell, value))
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def show_document(document: Any, *, as_json: bool) -> None:
    """Print a document: as JSON, or as YAML for people."""
    if as_json:
        emit(document)
        return
    import yaml

    plain = json.loads(json.dumps(document))
    text = yaml.safe_dump(
        plain,
        sort_keys=False,
        allow_unicode=_prints_unicode(),
        width=_PIPE_WIDTH,
        default_flow_style=None,
    )
    print(text, end="", flush=True)


def report_unforeseen(error: Exception, more: str = "") -> None:
    """Print an error that no code of ours foresaw, and ``more``; the traceback where it is wanted.

    Not by rich, which may be what failed.
    """
    lines = [f"wanlat: {unforeseen.paragraph(error)} {more}".rstrip()]
    if os.environ.get(unforeseen.TRACEBACK):
        lines += traceback.format_exception(error)
    else:
        lines.append(f"{unforeseen.TRACEBACK}=1 prints the traceback.")
    print(printed("\n".join(lines)), file=sys.stderr)


def counted(number: int, what: str) -> str:
    """Return such as `1 point` and `2 points`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def inform(text: str, *, style: str | None = None) -> None:
    """Print a line for people, exactly as it is (no markup)."""
    people().print(text, style=style, markup=False, soft_wrap=True)


def remark(text: str) -> None:
    """Print a line that is no result; left out with `--quiet`, and where it is not read."""
    if not is_quiet():
        with not_waiting():
            inform(text)
