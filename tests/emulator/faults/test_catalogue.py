"""A kind of fault is one module: CONTRIBUTING's example is found, parsed and taken by drills."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import get_args

import pytest

from tests.command_line import CHECKOUT
from tests.emulator.plans import mesh, ms
from wanlat.bundle.documents import Affected
from wanlat.emulator.changes import Change
from wanlat.emulator.faults import catalogue
from wanlat.emulator.faults.fault import Fault
from wanlat.emulator.faults.links import LinkFault
from wanlat.emulator.faults.timeline import Step, described
from wanlat.experiments.drill.model import FaultSpec
from wanlat.topologies.errors import UserError

PLAN = mesh(2, wan=ms(2))


@pytest.fixture
def duplicating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Fault]]:
    """The example's class, of a file of its own, once its module is listed."""
    page = (CHECKOUT / "CONTRIBUTING.md").read_text("utf-8").partition("## A fault\n")[2]
    example = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert example
    file = tmp_path / "duplicating.py"
    file.write_text(example[1], encoding="utf-8")
    spec = spec_from_file_location("duplicating", file)
    assert spec and spec.loader
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "duplicating", module)
    spec.loader.exec_module(module)
    ((kind, made),) = catalogue.kinds_of(module).items()
    monkeypatch.setitem(catalogue.KINDS, kind, made)
    yield made


def test_a_module_that_is_listed_is_all_that_a_fault_needs(duplicating: type[Fault]) -> None:
    entry = FaultSpec.model_validate({"duplicating": "n1", "part": "5%", "for": "10s"})
    fault = catalogue.parse(entry.kind, entry.target, entry.settings, PLAN, {})
    assert isinstance(fault, duplicating)
    assert fault.detail == "5% of packets twice"
    assert {str(direction) for direction in fault.directions} == {"n1->dc1", "dc1->n1"}
    with pytest.raises(UserError, match="part"):
        catalogue.parse("duplicating", "n1", {"part": "half"}, PLAN, {})


def test_a_module_lists_what_it_defines_and_nothing_that_it_imports_or_builds_upon() -> None:
    for module in catalogue.MODULES:
        kinds = catalogue.kinds_of(module)
        assert kinds and all(made.__module__ == module.__name__ for made in kinds.values())
    assert len(catalogue.KINDS) == sum(len(catalogue.kinds_of(each)) for each in catalogue.MODULES)


def test_every_kind_records_what_it_hits() -> None:
    affected = {kind: made.affects for kind, made in catalogue.KINDS.items()}
    assert affected["disk-full"] == "disks" and affected["cpu-throttled"] == "processes"
    for kind, made in catalogue.KINDS.items():
        assert (affected[kind] == "links") == issubclass(made, LinkFault), kind
    assert set(affected.values()) == {*get_args(Affected)}
    fault = catalogue.parse("disk-full", "n1", {}, PLAN, {})
    assert described(Step(1, fault, 0, None))["affects"] == "disks"


REFUSED: list[tuple[str, object, dict[str, object], str]] = [
    ("slow", "n1", {}, "`rtt` is missing"),
    ("slow", "n1", {"delay": "200ms"}, "write `rtt: TIME`"),
    ("slow", "n1", {"rtt": "0ms"}, "changes nothing"),
    ("slow", "n1", {"rtt": "5ms", "jitter": "20ms"}, "delays would be negative"),
    ("slow", "smoe", {"rtt": "5ms"}, "did you mean `some`"),
    ("slow", "site.some", {"rtt": "5ms"}, "n1 and n3, which is not one whole site"),
    ("lossy", "n1", {"loss": "100%"}, "blackhole"),
    ("throttled", "n1", {"rate": "0mbit"}, "lets nothing through"),
    ("blackhole", "n1", {"delay": "5ms"}, "it has no settings; remove `delay`"),
    ("partition", ["dc1"], {}, "two groups or more"),
    ("partition", ["some", "n2"], {}, "n1 shares the WAN links of site dc1 with n2"),
    ("partition", ["n1", "n2"], {}, "give each of its nodes a site of its own"),
    ("partition", ["dc1,n3", "dc2"], {}, "give each of its nodes a site of its own"),
    ("blackhole", "n1/n3", {}, "give each of its nodes a site of its own"),
    ("one-way-cut", "dc1/dc2", {}, "is both ways"),
    ("flapping", "n1", {"period": "5ms"}, "at least 20ms"),
    ("flapping", "n1", {"period": "5s", "down": "100%"}, "does not flap"),
    ("kil", "n1", {}, "no fault `kil` (did you mean `kill`?)"),
    ("kill", "minority", {}, "roles: {victim: {select: minority}}"),
    ("stop", None, {}, "is no target"),
    ("crash-loop", "n1", {"period": 0, "dwn": 1}, "unknown key `dwn` (did you mean `down`?)"),
]


@pytest.mark.parametrize(("kind", "target", "settings", "reason"), REFUSED)
def test_what_is_wrong_with_a_fault_is_named(
    kind: str, target: object, settings: dict[str, object], reason: str
) -> None:
    with pytest.raises(UserError) as error:
        catalogue.parse(kind, target, settings, mesh(2, 2, wan=ms(5)), {"some": ("n1", "n3")})
    assert reason in str(error.value)
    assert str(error.value).startswith(f"The fault `{kind}`: ") or kind == "kil"


@pytest.mark.parametrize("target", ["dc1/dc2", "n1", "dc1:dc2"])
def test_rtt_of_a_fault_is_what_a_round_trip_takes_longer_as_it_is_of_a_change(target: str) -> None:
    fault = catalogue.parse("slow", target, {"rtt": "200ms", "jitter": "40ms"}, PLAN, {})
    assert isinstance(fault, LinkFault)
    made = [
        Change.parse(fault.change(each), both_ways=False).on(ms(5)) for each in fault.directions
    ]
    assert sum(each.delay_ns for each in made) == ms(5 * len(made) + 200).delay_ns
    if len(made) == 2:
        lab = Change.parse({"rtt": "+200ms", "jitter": "+40ms"}, both_ways=True)
        assert made == [lab.on(ms(5))] * 2
    assert fault.detail == "+200ms ± 40ms"


def test_nodes_that_have_a_site_each_can_be_partitioned() -> None:
    plan = mesh(3)  # as the error about nodes of one site advises: 0 ms between the sites
    fault = catalogue.parse("partition", ["n1", "n2"], {}, plan, {})
    assert {str(direction) for direction in fault.directions} == {"dc1->dc2", "dc2->dc1"}
