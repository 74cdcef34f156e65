"""What is said of a bundle, and documents of bundles that are changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wanlat.analysis.section import Answer, Section
from wanlat.bundle.matrix import Matrix, read_source
from wanlat.bundle.run import Run


def opened(path: Path) -> Run | Matrix:
    """A bundle, of whichever kind."""
    return read_source(path)


def answer_of(section: Section, path: Path) -> Answer:
    """The answer of a section to a bundle that has one."""
    answer = section.answer(opened(path))
    assert answer is not None
    return answer


def notes_of(answer: Answer) -> str:
    """All that stands below its tables."""
    return "\n".join(note for grid in answer.grids() for note in grid.notes)


@contextmanager
def changing(path: Path) -> Iterator[Any]:
    """A JSON document of a bundle, which is written as the block leaves it."""
    document = json.loads(path.read_text())
    yield document
    path.write_text(json.dumps(document))
