"""Shipped drills in their short form on the reference store, several beside each other.

They mostly wait, so a core carries more than one; not many, as of a phase of a second a client that
gets no processor sees nothing. What is asked of them is what became of the
objects; of how long requests took nothing, and so the network is not calibrated first, which on a
machine that is this busy would fail.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.experiments import session
from wanlat.experiments.drill.model import Drill as Script
from wanlat.experiments.drill.prepare import load, prepare
from wanlat.experiments.drill.runner import run as run_drill

if TYPE_CHECKING:
    from wanlat.analysis.figures.drill.read import Drill

BESIDE_EACH_OTHER = 3
SCALE = 0.06


@dataclass(frozen=True)
class Short:
    """One run of a shipped drill."""

    drill: str
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Of the drill's own keys: fewer objects, or none for a drill that is not about many."""

    def __str__(self) -> str:
        planted = ", ".join(self.options.get("defects", ()))
        return f"{self.drill}, seed {self.seed}{f', with {planted}' if planted else ''}"


@dataclass(frozen=True)
class Came:
    """What came of it."""

    of: Short
    status: str
    reason: str | None
    drill: Drill
    bundle: Path

    def __str__(self) -> str:
        counts = self.drill["durability"]
        told = f"{self.of}: {self.status} ({self.reason}), {counts['verdict']}"
        return f"{told} {json.dumps(counts['examples'])[:2000]} ({self.bundle})"


def play(runs: Iterable[Short], below: Path) -> Iterator[Came]:
    """Run drills, each in a bundle below a directory; yield what came of them as they end."""
    from wanlat.analysis.figures.drill.read import (
        read_drill,  # not in those that run them: it takes a second
    )

    # A fresh interpreter each: threads of the parent are not to be forked.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(BESIDE_EACH_OTHER, context, _skip_calibration) as pool:
        started = {
            pool.submit(_run, run, below / f"{number:02}-{run.drill}"): run
            for number, run in enumerate(runs)
        }
        for ended in as_completed(started):
            status, reason, bundle = ended.result()
            yield Came(started[ended], status, reason, read_drill(bundle), bundle)


def _skip_calibration() -> None:
    session.prove = lambda *_, **__: None


def _run(run: Short, bundle: Path) -> tuple[str, str | None, Path]:
    script = Script.model_validate({**load(run.drill).to_dict(), **run.changes})
    prepared = prepare(
        script,
        system="quorum",
        scale=SCALE,
        seed=run.seed,
        options=run.options,
        directory=bundle,
    )
    outcome = run_drill(prepared)
    return outcome.status, outcome.reason, outcome.directory
