"""A user's text file, read whole; or the sentence with the reason why it cannot be."""

from __future__ import annotations

from pathlib import Path


class UnreadableFile(Exception):
    """A file that is no text of ours: what is wrong, without the file's name, and in which line."""

    def __init__(self, text: str, line: int | None = None) -> None:
        """The line counts from 1; None where there are no lines yet."""
        super().__init__(text)
        self.text, self.line = text, line

    def at(self, file: str) -> str:
        """The sentence with its place."""
        return f"{file}: {self.text}" if self.line is None else f"{file}:{self.line}: {self.text}"


def read_text(path: Path, what: str, most_bytes: int) -> str:
    """Return the text of a file, without a byte order mark. Raises UnreadableFile.

    `what`: the kind of file that is wanted, as in `a YAML file`.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(most_bytes + 1)
    except IsADirectoryError:
        raise UnreadableFile(f"this is a directory; give {what}") from None
    except FileNotFoundError:
        raise UnreadableFile("there is no such file") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise UnreadableFile(f"the file cannot be read: {reason}") from None
    if len(data) > most_bytes:
        raise UnreadableFile(f"the file is larger than {most_bytes // 2**20} MiB; give {what}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        bad = f"0x{data[problem.start]:02x}"
        raise UnreadableFile(f"byte {bad} is not UTF-8; save the file as UTF-8", line) from None
