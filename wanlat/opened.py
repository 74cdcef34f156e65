"""A bundle for programs and notebooks: what it recorded and what a report finds, as frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from wanlat.analysis.report import charts_of
from wanlat.analysis.summary import Summary, summarize
from wanlat.bundle.documents import Manifest
from wanlat.bundle.errors import BundleError, refusing
from wanlat.bundle.matrix import Matrix, read_source
from wanlat.bundle.read import complete_points, read_manifest, read_table
from wanlat.bundle.results import Report
from wanlat.bundle.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMES = ("system", "version", "endpoint", "placement", "operation", "point")
"""What rows within a row have of it."""
_VARIED = ("values", "others")
"""Under these a row has what a matrix varies."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class OpenBundle:
    """A run, a matrix or several drills, as they lie on disk; nothing is written.

    Each part is read or computed at its first use. All raise BundleError where a file is
    damaged. Of several drills there are `points`, and the frames of all of them.
    """

    directory: Path
    manifest: Manifest
    """What was run, on what, and how it ended."""

    @cached_property
    def points(self) -> Mapping[str, OpenBundle]:
        """The complete points of a matrix, or of several drills, by name; none of one run."""
        return {
            point.name: open_bundle(self.directory / point.directory)
            for point in complete_points(self.directory)
        }

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Every request, of warm-up too, one row each: columns as in docs/reference/bundle.md, ns.

        Of several points one below the other, with the column `point`.
        """
        with refusing(self.directory):
            source = None if self.points else self._source
            if isinstance(source, Run):
                return source.samples
            return _below(self.points, lambda point: point.samples)

    def table(self, name: str) -> pd.DataFrame:
        """Another table as it was recorded: "events", "resources", "load", "lateness".

        Raises BundleError where the bundle has none of that name.
        """
        table = read_table(self.directory, name)
        if table is None:
            raise BundleError(
                f"{self.directory} has no table {name}. It has: "
                f"{', '.join(sorted(path.stem for path in self.directory.glob('*.parquet')))}."
            )
        return table[0]

    @cached_property
    def report(self) -> Report:
        """What a report finds, as `wanlat report --json` prints it. Of one run or a matrix."""
        return Report.model_validate(self._document)

    @cached_property
    def figures(self) -> Mapping[str, pd.DataFrame]:
        """The same as tidy frames, by where their rows stand in the report.

        "endpoints", "round_trips", "drill.phases", "load.systems.operations": a row names
        what it stands in; intervals are lists of two. Of several drills with the column `point`.
        """
        if self.manifest.kind == "drills":
            every = {path: None for point in self.points.values() for path in point.figures}
            return {path: self._of_points(path) for path in every}
        with refusing(self.directory):
            rows: dict[str, list[Row]] = {}
            for place, row in _rows(self._document, {}):
                rows.setdefault(place, []).append(row)
            return {place: pd.json_normalize([*map(dict, part)]) for place, part in rows.items()}

    def charts(self) -> Mapping[str, Figure]:
        """The charts of its report, drawn anew, by the stems of their files' names."""
        with refusing(self.directory):
            return dict(charts_of(self._summary))

    @cached_property
    def _source(self) -> Run | Matrix:
        with refusing(self.directory):
            return read_source(self.directory)

    @cached_property
    def _summary(self) -> Summary:
        with refusing(self.directory):
            return summarize(self._source)

    @cached_property
    def _document(self) -> dict[str, Any]:
        with refusing(self.directory):
            return self._summary.to_json()

    def _of_points(self, path: str) -> pd.DataFrame:
        having = {name: point for name, point in self.points.items() if path in point.figures}
        return _below(having, lambda point: point.figures[path])


def open_bundle(directory: Path | str) -> OpenBundle:
    """Open the bundle in `directory`. Raises BundleError where there is none, or a damaged one."""
    directory = Path(directory)
    return OpenBundle(directory, read_manifest(directory))


def _below(
    points: Mapping[str, OpenBundle], frame: Callable[[OpenBundle], pd.DataFrame]
) -> pd.DataFrame:
    """The frames of points one below the other, with their names."""
    frames = [frame(point).assign(point=name) for name, point in points.items()]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _rows(value: Row, above: Row, place: str = "") -> Iterator[tuple[str, Row]]:
    """Every row of a document with where it stands, and what names those that it stands in."""
    names = {**above, **{key: value[key] for key in _NAMES if key in value}}
    for key, inner in value.items():
        path = f"{place}{key}"
        if isinstance(inner, dict):
            yield from _rows(inner, names, f"{path}.")
        elif isinstance(inner, list) and all(isinstance(row, dict) for row in inner):
            for row in inner:
                inner_rows = [row[name] for name in _VARIED if isinstance(row.get(name), dict)]
                varied = {name: value for values in inner_rows for name, value in values.items()}
                own = {name: value for name, value in row.items() if value not in inner_rows}
                yield path, {**names, **own, **varied}
                yield from _rows(row, {**names, **varied}, f"{path}.")
