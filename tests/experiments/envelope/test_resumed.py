"""A search that is resumed: networks that have a verdict are not tested again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wanlat.bundle import documents
from wanlat.bundle.documents import Envelope, Envelopes, Network
from wanlat.bundle.write import write_document
from wanlat.experiments.envelope.search import Question
from wanlat.experiments.kinds.envelope import EnvelopeSpec
from wanlat.experiments.workloads.envelope import EnvelopeWorkload

SPEC = EnvelopeSpec.model_validate({"rtt": {"low": "10ms", "high": "300ms", "precision": "20%"}})
LIMIT_MS = 60


def searched(point: Path) -> tuple[list[float], EnvelopeWorkload]:
    """Search on a stand-in with a limit; return which RTTs it tested."""
    point.mkdir(parents=True, exist_ok=True)
    tested: list[float] = []
    search: Any = object.__new__(EnvelopeWorkload)
    search.name, search.spec, search._found = "quorum", SPEC, Envelope(system="quorum")
    search.prepared = SimpleNamespace(seed=3)
    search.bundle = SimpleNamespace(directory=point)
    search.session = SimpleNamespace(warn=lambda _: None)

    def test(question: Question) -> bool:
        holds = question.network.rtt_ms <= LIMIT_MS
        tested.append(question.network.rtt_ms)
        network = documents.TestedNetwork(
            number=len(search._found.tests),
            network=question.network,
            after=question.after,
            trials=[],
        )
        network.verdict = "holds" if holds else "fails"
        search._found.tests = [*search._found.tests, network]
        return holds

    search._tested = test
    search._kept = search._of_earlier_attempts()
    SPEC.plan.find(search._decide, search._chance())
    return tested, search


def left_behind(point: Path, number: int, tests: Sequence[Any]) -> None:
    """What an attempt that ended early left beside the point."""
    directory = point.with_name(f"{point.name}.attempt-{number}")
    directory.mkdir(parents=True)
    found = Envelope(system="quorum", tests=tests)
    write_document(directory, Envelopes(systems=[found]))


def test_a_search_goes_on_after_its_last_verdict(tmp_path: Path) -> None:
    whole, search = searched(tmp_path / "whole")
    tests = [*search._found.tests]
    point = tmp_path / "points" / "quorum"
    left_behind(point, 9, tests[:2])
    left_behind(point, 10, [*tests[:5], tests[5].model_copy(update={"verdict": None})])
    rest, resumed = searched(point)
    assert rest == whole[5:]
    assert [*resumed._found.tests] == tests


@pytest.mark.parametrize("changes", [{"is_complete": True}, {"system": "other"}])
def test_what_is_complete_or_of_another_system_is_measured_again(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    whole, search = searched(tmp_path / "whole")
    point = tmp_path / "points" / "quorum"
    directory = point.with_name("quorum.attempt-1")
    directory.mkdir(parents=True)
    found = search._found.model_copy(update=changes)
    write_document(directory, Envelopes(systems=[found]))
    assert searched(point)[0] == whole


def test_verdicts_on_other_networks_are_none_of_this_search(tmp_path: Path) -> None:
    whole, search = searched(tmp_path / "whole")
    first, second, *_ = search._found.tests
    other = second.model_copy(update={"network": Network(rtt_ms=7.0)})
    point = tmp_path / "points" / "quorum"
    left_behind(point, 1, [first, other])
    assert searched(point)[0] == whole[1:]
