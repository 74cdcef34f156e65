"""A store's timeouts: mistakes in a definition, which values are tried, and what moves along."""

from __future__ import annotations

from pathlib import Path

import pytest
from systems_doubles import plan_of

from wanlat.systems import registry
from wanlat.systems.engine import timeouts
from wanlat.systems.engine.definition import DefinitionError, read
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration

WRONG = """schema: 1
name: mine
extends: quorum
options:
  beat: {type: duration, default: 100ms}
  size: {type: size, default: 1KiB}
timeouts:
  patience: {role: patience, option: peer_timeout}
  election: {role: election, option: bea, tried: [1, 1]}
  size: {role: link, option: size, times: 0}
  beat: {role: heartbeat, option: beat, follows: {timeout: electoin, share: 30%, at_most: 20%}}
  other: {role: request, option: beat, follow: beat}
"""


def written(directory: Path, text: str) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "system.yaml").write_text(text)
    return directory


def test_mistakes_in_timeouts_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    wrong = [
        (8, "allowed: heartbeat, election, link or request"),
        (9, "`1.0` is given twice; each is measured once"),
        (10, "timeouts.size.times: `0` is too small"),
        (12, "did you mean `follows`"),
    ]
    with pytest.raises(DefinitionError) as caught:
        read(written(tmp_path / "mine", WRONG))
    rows = str(caught.value).splitlines()
    for line, part in wrong:
        assert any(f":{line}:" in row and part in row for row in rows), (part, rows)
    # What is wrong between keys is seen once each is right by itself.
    text = WRONG.replace("role: patience", "role: request").replace("[1, 1]", "[1]")
    text = text.replace("times: 0", "times: 2").replace("follow: beat", "times: 3")
    with pytest.raises(DefinitionError) as caught:
        read(written(tmp_path / "mine", text))
    rows = str(caught.value).splitlines()
    for line, part in [
        (9, "there is no option `bea` (did you mean `beat`?)"),
        (10, "option `size` is no duration with a default"),
        (11, "`electoin` is no timeout that follows none (did you mean `election`?)"),
        (11, "30% is more than `at_most`, 20%"),
    ]:
        assert any(f":{line}:" in row and part in row for row in rows), (part, rows)


@pytest.mark.parametrize("name", registry.names())
def test_defaults_of_every_shipped_system_are_within_its_bounds(name: str) -> None:
    system = registry.get(name)
    options = system.parse_options()
    assert not [*timeouts.invalid(system.definition, options)]
    for each in system.timeouts(options):
        assert each["ms"] == each["default_ms"] > 0


def test_what_follows_moves_by_its_share_or_as_the_defaults_are() -> None:
    etcd, redis = (registry.get(name).definition for name in ("etcd", "redis"))
    values = [str(each) for each in timeouts.tried(etcd, "election")]
    assert values == ["250ms", "500ms", "1s", "2s", "5s", "10s"]
    two = Duration.parse("2s")
    assert timeouts.options_of(etcd, "election", two) == {"election": "2s", "heartbeat": "200ms"}
    assert timeouts.options_of(etcd, "election", two, ["heartbeat"]) == {"election": "2s"}
    assert timeouts.options_of(etcd, "heartbeat", two) == {"heartbeat": "2s"}
    moved = timeouts.options_of(redis, "replication", Duration.parse("30s"))
    assert moved == {"repl_timeout": "30s", "repl_ping": "5s"}


def test_a_timeout_may_be_a_multiple_of_its_option() -> None:
    system = registry.get("zookeeper")
    assert timeouts.options_of(system.definition, "silence", Duration.parse("5s")) == {"tick": "1s"}
    known = {each["name"]: each for each in system.timeouts(system.parse_options({"tick": "1s"}))}
    assert (known["silence"]["ms"], known["silence"]["default_ms"]) == (5000, 10_000)
    assert (known["ping"]["ms"], known["ping"]["follows"]) == (500, "silence")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"heartbeat": "300ms"}, "etcd's timeout heartbeat is 300ms, and at most 20% of election"),
        ({"election": "60s"}, "etcd's timeout election is 60s, and at most 50s"),
        ({"election": "5ms", "heartbeat": "1ms"}, "election is 5ms, and at least 10ms"),
    ],
)
def test_what_a_store_would_refuse_is_refused_before_it_starts(
    options: dict[str, str], said: str
) -> None:
    etcd, plan = registry.get("etcd"), plan_of(1, 1, 1)
    etcd.check_topology(plan, etcd.parse_options({"heartbeat": "200ms"}))
    with pytest.raises(UserError, match=said):
        etcd.check_topology(plan, etcd.parse_options(options))
