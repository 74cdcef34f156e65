"""Whether two manifests name the same programs, and which part of one is another."""

from __future__ import annotations

from typing import Any

import pytest

from wanlat.bundle.identity import differences, unlike

STORE: dict[str, Any] = {
    "name": "store",
    "version": "1",
    "sha256": "a",
    "files_sha256": "b",
    "packages": {"dep": "1"},
    "toolchain": ["go 1"],
    "files": {"system.yaml": "c", "program java": "d"},
    "definition": {"system.yaml": "name: store\ncommand: [store, fast]\n"},
    "beside": [{"name": "nginx", "version": "1", "sha256": "e"}],
}


def test_what_is_the_same_differs_in_nothing() -> None:
    assert differences(STORE, dict(STORE)) == []
    # An older bundle does not state all of it.
    assert (
        differences({"name": "store", "version": "1", "sha256": "a"}, STORE | {"beside": []}) == []
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"sha256": "z", "toolchain": ["go 2"]}, ("program", "go 1", "go 2")),
        ({"files_sha256": "z"}, ("installed",)),
        ({"packages": {"dep": "2"}}, ("dep", "1", "2")),
        ({"packages": {}}, ("dep",)),
        ({"files": {**STORE["files"], "program java": "z"}}, ("program java",)),
        ({"files": {"system.yaml": "c"}}, ("program java",)),
        (
            {
                "files": {**STORE["files"], "system.yaml": "z"},
                "definition": {"system.yaml": "name: store\ncommand: [store, slow]\n"},
            },
            ("system.yaml", "line 2", "[store, fast]", "[store, slow]"),
        ),
        ({"beside": [STORE["beside"][0] | {"sha256": "z"}]}, ("nginx", "program")),
        ({"beside": []}, ("nginx",)),
    ],
)
def test_the_part_that_is_another_is_named(change: dict[str, Any], named: tuple[str, ...]) -> None:
    (found,) = differences(STORE, STORE | change)
    assert all(word in found for word in named)
    assert differences(STORE | change, STORE) != []


def test_a_program_with_several_options_is_compared_with_each_of_the_other_side() -> None:
    other = STORE | {"sha256": "z"}
    assert unlike([STORE, other], [other]) == {}
    assert unlike([STORE], [other]).keys() == {"store"}
    assert unlike([STORE], [other | {"name": "new"}]) == {}
