"""What a study of the operating envelope searches. (Mistakes in it: `test_config`.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.commands import study
from wanlat.bundle.documents import Network
from wanlat.experiments.config.study import load
from wanlat.experiments.envelope.search import Axis, SequentialTest
from wanlat.experiments.kinds.envelope import EnvelopeSpec
from wanlat.experiments.prepare import prepare
from wanlat.experiments.workloads.envelope import missing
from wanlat.topologies.errors import UserError

ENDPOINTS = "endpoints: [GetObject, PutObject]\n"


def loaded(directory: Path, spec: str, sites: int = 3) -> str:
    return study(directory, f"{ENDPOINTS}envelope: {spec}\n", sites=sites)


def test_the_shipped_study_searches_two_axes_and_their_frontier() -> None:
    spec = load("envelope").kind
    assert isinstance(spec, EnvelopeSpec)
    assert spec.plan.axes == (
        Axis("rtt", 5.0, 2000.0, 0.05),
        Axis("loss", 0.001, 0.5, 0.5, (0.01, 0.05)),
    )
    assert spec.plan.near == Network(rtt_ms=5.0)
    assert spec.test == SequentialTest(0.95, 0.3, 0.05, 12)
    assert spec.promise.pairs * 2 == 20, "a request a second each"


def test_a_cluster_is_prepared_near(tmp_path: Path) -> None:
    file = loaded(tmp_path, "{rtt: {low: 8ms}, jitter: {levels: [20ms]}}")
    prepared = prepare(load(file), directory=tmp_path / "bundle")
    assert {link.forward.delay_ns * 2 for link in prepared.plan.wan_links} == {8_000_000}
    spec = prepared.study.kind
    assert isinstance(spec, EnvelopeSpec)
    assert spec.plan.axes[1] == Axis("jitter", 5.0, 2000.0, 0.03, (20.0,))


def test_without_a_link_between_sites_there_is_nothing_to_search(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has one site\. Choose one of several"):
        prepare(load(loaded(tmp_path, "{}", sites=1)))
    with pytest.raises(UserError, match="atlantis"):
        prepare(load(loaded(tmp_path, "{regions: atlantis}")))


def test_a_system_without_objects_is_refused_before_anything_starts(tmp_path: Path) -> None:
    proto = Path(__file__).parents[3] / "proto" / "bob.proto"
    service = f"{{service: {{command: [/bin/true], protos: [{proto}]}}}}"
    keys = f"systems: [service]\noptions: {service}\nendpoints: [bob_storage.BobApi/Ping]\n"
    with pytest.raises(UserError, match="`envelope` writes and reads objects"):
        prepare(load(study(tmp_path, f"{keys}envelope: {{}}\n")))


@pytest.mark.parametrize(
    ("told", "lost", "stale"),
    [
        ([{"yes"}, {"yes", "unread"}], 0, 0),
        ([{"no"}, {"yes"}], 1, 0),
        ([{"yes", "no"}, {"no"}], 1, 1),
        ([{"no", "unread"}], 0, 0),
        ([{"yes", "wrong"}], 1, 0),
    ],
)
def test_what_one_node_has_is_not_lost(told: list[set[str]], lost: int, stale: int) -> None:
    assert missing(told) == (lost, stale)
