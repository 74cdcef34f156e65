"""Options: unknown ones and wrong values are explained, all at once."""

from __future__ import annotations

import pytest

from wanlat.systems import registry
from wanlat.topologies.errors import UserError


def test_without_options_each_system_has_its_defaults() -> None:
    for name in registry.names():
        registry.get(name).parse_options()


def test_an_unknown_option_names_the_near_one_and_all_others() -> None:
    with pytest.raises(UserError) as caught:
        registry.get("garage").parse_options({"replication_facto": 3})
    message = str(caught.value)
    assert "garage" in message
    assert "did you mean `replication_factor`" in message
    assert "consistency_mode" in message
    assert caught.value.exit_code == 2


def test_every_mistake_is_told_in_one_go() -> None:
    with pytest.raises(UserError) as caught:
        registry.get("garage").parse_options(
            {"replication_factor": 0, "db_engine": "oracle", "colour": "red"}
        )
    for part in ("replication_factor", "db_engine", "`oracle`", "'lmdb' or 'sqlite'", "colour"):
        assert part in str(caught.value)


def test_text_from_a_command_line_is_understood() -> None:
    options = registry.get("garage").parse_options({"replication_factor": "2"})
    assert options.replication_factor == 2


@pytest.mark.parametrize(
    "protocol", ["leaderless", "leader", "rounds:1", "rounds:16", "mixture:30:1:3"]
)
def test_protocols_of_the_reference_store(protocol: str) -> None:
    assert registry.get("quorum").parse_options({"protocol": protocol}).protocol == protocol


@pytest.mark.parametrize(
    "protocol",
    [
        *("raft", "rounds", "rounds:0", "rounds:17", "rounds:x", "leader\n", ""),
        *("mixture", "mixture:30", "mixture:0:1:3", "mixture:100:1:3", "mixture:30:1:17"),
    ],
)
def test_other_protocols_are_refused_with_those_that_exist(protocol: str) -> None:
    with pytest.raises(UserError, match=r"leaderless, leader or rounds:K"):
        registry.get("quorum").parse_options({"protocol": protocol})


def test_an_unknown_system_names_those_that_exist() -> None:
    with pytest.raises(
        UserError,
        match=r"did you mean `garage`\?.*knows quorum, garage, minio, minio-nginx, bob and service",
    ):
        registry.get("garbage")
    with pytest.raises(UserError, match=r"no system `x`\. wanlat knows"):
        registry.get("x")
