"""How a message shows what a user wrote and what would have been right."""

import difflib
from collections.abc import Iterable, Sequence

_LONGEST_SHOWN = 60


def printable(text: str) -> str:
    """The text with control characters and lone surrogates escaped: safe to print anywhere."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def in_words(error: BaseException) -> str:
    """The words of an error, without Python's number of it: `No such file or directory: /x/y`."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    names = (error.filename, error.filename2)
    return ": ".join([error.strerror, " -> ".join(str(name) for name in names if name)]).strip(": ")


def short(text: str) -> str:
    """The text made printable, and cut when long."""
    text = printable(text[:_LONGEST_SHOWN]) + text[_LONGEST_SHOWN:]
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def show(value: object) -> str:
    """A value as a user would write it in YAML, in backquotes, on one line, cut when long."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and value.bit_length() > 1024:
        return "a huge number"  # str() of it may be refused: sys.set_int_max_str_digits
    text = short(str(value)) or '""'
    return f"`{text}`"


def listing(names: Iterable[str], conjunction: str = "and", at_most: int | None = None) -> str:
    """`a, b and c`; with `at_most`, the rest is counted: `a, b and 7 more`."""
    words = list(names)
    if at_most is not None and len(words) > at_most:
        words = [*words[:at_most], f"{len(words) - at_most} more"]
        conjunction = "and"
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {conjunction} {words[-1]}"


def closest(word: str, known: Sequence[str]) -> str | None:
    """The known word nearest to this one, or None when none is near."""
    # Comparing takes time in the product of the lengths; no name of ours is that long.
    matches = difflib.get_close_matches(word[:100], known, n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """` (did you mean NAME?)`, or nothing when no known word is near."""
    near = closest(word, known)
    return f" (did you mean {show(near)}?)" if near is not None else ""
