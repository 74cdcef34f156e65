"""The files of a matrix: the picture, the document, and the two tables for a page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from wanlat.bundle.errors import BundleError


def matrix_report(places: Sequence[Path], out: Path) -> tuple[Path, ...]:
    """Write the matrix of the bundles at `places` into `out`, and say what was written.

    matrix.png, matrix.svg, matrix.json, drills.md and claims.md; the same bundles give the same
    bytes. Raises BundleError if one is no bundle of a drill or `out` cannot be written.
    """
    from wanlat.analysis.charts import drill_matrix, style
    from wanlat.analysis.drill.matrix import read_matrix
    from wanlat.analysis.drill.matrix_wording import claims_markdown, drills_markdown

    matrix = read_matrix(places)
    texts = {
        "matrix.json": matrix.to_text(),
        "drills.md": drills_markdown(matrix),
        "claims.md": claims_markdown(matrix),
    }
    for name, text in texts.items():
        _write(out / name, text)
    pictures = style.save(drill_matrix.draw(matrix), out / "matrix")
    return (*pictures, *(out / name for name in texts))


def _write(path: Path, text: str) -> None:
    """Replace `path` by `text` in one step, so that nobody reads half of it."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise BundleError(
            f"{path} cannot be written: {error.strerror or error}. Name a directory with --out "
            "that you may write to."
        ) from error
