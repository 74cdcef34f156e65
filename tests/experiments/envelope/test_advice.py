"""What `--advise` makes of a study: a point for each value of a timeout, and the price of each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.command_line import here
from wanlat.experiments.config.study import Study, changed, load
from wanlat.experiments.envelope.advice import KILLS, advised
from wanlat.experiments.envelope.price import patience_s
from wanlat.experiments.kinds.envelope import EnvelopeSpec
from wanlat.experiments.matrix_points import points_of
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration

ELECTION, HEARTBEAT = "options.etcd.election", "options.etcd.heartbeat"


def etcd(settings: Mapping[str, Any] = {}, **axes: Sequence[Any]) -> Study:
    return changed(load("envelope"), {"systems": ["etcd"], **settings}, axes)


def values(study: Study) -> list[dict[str, Any]]:
    return [dict(point.values) for point in points_of(study)]


def of(**named: str) -> dict[str, list[Duration]]:
    return {
        name: [Duration.parse(each) for each in text.split(",")] for name, text in named.items()
    }


def test_the_definition_says_which_values_there_are_and_what_moves_along() -> None:
    study = advised(etcd(), {})
    found = [(each[ELECTION], each[HEARTBEAT]) for each in values(study)]
    assert found == [
        *(("250ms", "25ms"), ("500ms", "50ms"), ("1s", "100ms")),
        *(("2s", "200ms"), ("5s", "500ms"), ("10s", "1s")),
    ]
    assert isinstance(study.kind, EnvelopeSpec)
    assert study.kind.kills == KILLS
    assert study.options == {}, "values are the points' own"


def test_values_may_be_named_and_how_often_a_leader_is_killed() -> None:
    study = advised(etcd({"envelope.kills": 2}), of(election="500ms,2s"))
    assert [each[ELECTION] for each in values(study)] == ["500ms", "2s"]
    assert isinstance(study.kind, EnvelopeSpec)
    assert study.kind.kills == 2


def test_what_the_study_sets_stays_and_what_then_cannot_be_is_not_chosen() -> None:
    study = advised(etcd({HEARTBEAT: "300ms"}), {})
    assert values(study) == [{ELECTION: each} for each in ("2s", "5s", "10s")]
    assert study.options == {"etcd": {"heartbeat": "300ms"}}


def test_it_goes_with_a_matrix_and_with_replicates() -> None:
    study = advised(etcd({"replicates": 2}, nodes=[3, 5]), of(election="1s,2s"))
    assert len(values(study)) == 8
    assert {(each["nodes"], each[ELECTION]) for each in values(study)} == {
        *((3, "1s"), (3, "2s"), (5, "1s"), (5, "2s"))
    }


@pytest.mark.parametrize(
    ("study", "wanted", "said"),
    [
        (load("round-trips"), {}, "study round-trips does not search for limits"),
        (etcd(), of(electoin="1s"), r"no timeout `electoin` \(did you mean `election`\?\)"),
        (etcd({ELECTION: "1s"}), {}, "`options.etcd.election` is set and varied"),
        (etcd({"systems": ["nats"]}), {}, "the definition of nats names no `timeouts`"),
    ],
)
def test_what_cannot_be_advised_is_told(study: Study, wanted: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        advised(study, wanted)


@pytest.mark.parametrize(
    ("words", "points"),
    [
        (["--advise", "--systems", "quorum"], ["1.25s", "2.5s", "5s", "10s", "25s", "50s"]),
        (["--systems", "quorum", "--advise"], ["1.25s", "2.5s", "5s", "10s", "25s", "50s"]),
        (["--advise", "patience=30ms,5s"], ["30ms", "5s"]),
    ],
)
def test_the_option_may_stand_alone(words: list[str], points: list[str]) -> None:
    done = here("run", "envelope", *words, "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    names = [each["point"] for each in json.loads(done.stdout)["points"]]
    assert names == [f"quorum-options.quorum.peer_timeout-{each}" for each in points]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("patience=5", "`5` has no unit"),
        ("patience=", "it has no values"),
        ("patience=0.5us", "quorum's timeout patience"),
    ],
)
def test_mistakes_in_values_are_told(given: str, said: str) -> None:
    done = here("run", "envelope", "--advise", given, "--dry-run")
    assert done.returncode == 2
    assert said.lower() in done.stderr.lower()


def test_a_takeover_is_waited_for_several_times_the_timeout() -> None:
    assert (patience_s(0.5), patience_s(10.0)) == (15.0, 40.0)
