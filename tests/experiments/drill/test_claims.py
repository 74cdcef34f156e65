"""Files of claims: which apply to a drill, and how mistakes in them are reported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wanlat.experiments.drill.claim import Claim, claims_on
from wanlat.experiments.drill.files import ClaimsError, load
from wanlat.experiments.drill.model import Drill
from wanlat.experiments.drill.prepare import prepare
from wanlat.experiments.drill.scale import scaled_claims

DRILL = """\
name: mine
topology: five-sites
roles: {victim: {select: one}, others: {select: rest}}
clients: {here: {node: others}, there: {node: victim}}
phases: {before: 20s, during: 40s, after: 40s}
faults: [{kill: victim}]
"""
CLAIM = "system: quorum\nclaims:\n- {id: a, claim: it goes on, source: here, drill: mine, "
READS = CLAIM + "availability: {of: reads, client: here, from: 10s, to: 20s, at_least: 90%}}\n"


def drill_in(directory: Path) -> Drill:
    file = directory / "drill.yaml"
    file.write_text(DRILL)
    return load(str(file))


def claims_in(directory: Path, *texts: str, system: str = "quorum") -> tuple[Claim, ...]:
    files = [directory / f"claims-{number}.yaml" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    return claims_on(drill_in(directory), system, files)


def test_claims_apply_to_their_system_and_to_the_drills_that_they_name(tmp_path: Path) -> None:
    more = "- {id: b, claim: c, source: s, drill: [flapping, mine], durability: broken}\n"
    other = "- {id: c, claim: c, source: s, drill: flapping, durability: intact}\n"
    read, durable = claims_in(tmp_path, READS + more + other)
    assert read.applied() == {
        "id": "a",
        "claim": "it goes on",
        "source": "here",
        "availability": {
            **{"of": "reads", "client": "here", "phase": "during"},
            **{"from": "10s", "to": "20s", "at_least": "90%"},
        },
    }
    assert durable.applied()["durability"] == "broken"
    assert claims_in(tmp_path, READS, system="bob") == ()


def test_the_example_of_the_documentation_is_one(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "drills.md"
    drill, claims = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    (tmp_path / "drill.yaml").write_text(drill)
    (tmp_path / "claims.yaml").write_text(claims)
    applied = claims_on(load(str(tmp_path / "drill.yaml")), "garage", [tmp_path / "claims.yaml"])
    assert [each.id for each in applied] == ["our-hanging-node-writes", "our-data"]


def test_a_file_of_the_users_comes_after_the_shipped_claims(tmp_path: Path) -> None:
    file = tmp_path / "claims.yaml"
    file.write_text(READS.replace("mine", "one-node-killed").replace("here,", "survivor,"))
    out = tmp_path / "b"
    shipped = prepare("one-node-killed", system="quorum", directory=out).claims
    assert {each.durability for each in shipped} == {None, "intact"}
    with_mine = prepare("one-node-killed", system="quorum", claims=[file], directory=out).claims
    assert with_mine[:-1] == shipped
    assert with_mine[-1].id == "a"


def test_windows_become_as_much_shorter_as_the_drill(tmp_path: Path) -> None:
    (short,) = scaled_claims(claims_in(tmp_path, READS), 0.1)
    assert short.availability is not None
    assert (str(short.availability.since), str(short.availability.to)) == ("1s", "2s")


@pytest.mark.parametrize(
    ("claim", "where", "says"),
    [
        ("}", "claims[0]", "either `availability` or `durability`"),
        ("durability: intact, of: reads}", "claims[0].of", "stands in `availability`"),
        ("durability: whole}", "claims[0].durability", "allowed: intact or broken"),
        ("availability: {at_least: 90%}}", "claims[0].availability", "`of`"),
        ("availability: {of: reads}}", "claims[0].availability", "give one bound"),
        (
            "availability: {of: reads, at_least: 90%, at_most: 99%}}",
            *("claims[0].availability", "give one bound"),
        ),
        (
            "availability: {of: reads, client: her, at_least: 90%}}",
            *("claims[0].availability.client", "did you mean `here`?"),
        ),
        (
            "availability: {of: reads, to: 41s, at_least: 90%}}",
            *("claims[0].availability.to", "over after 40s"),
        ),
        (
            "availability: {of: reads, from: 9s, to: 9s, at_least: 90%}}",
            *("claims[0].availability.from", "nothing is left"),
        ),
        ("durability: intact, drill: flaping}", "claims[0].drill", "did you mean `flapping`?"),
        ("durability: intact, drill: [mine, min]}", "claims[0].drill[1]", "did you mean `mine`?"),
        ("durability: intact, id: A b}", "claims[0].id", "should match"),
        ("durability: intact}\n- {id: a}", "claims[1].id", "another claim (first in line 3)"),
        (
            # Of a shipped drill as well as of the one at hand.
            "availability: {of: reads, client: her, at_least: 1%}, drill: flapping}",
            *("claims[0].availability.client", "drill flapping has no client `her`"),
        ),
    ],
)
def test_a_mistake_in_a_claim_is_reported_where_it_is(
    claim: str, where: str, says: str, tmp_path: Path
) -> None:
    text = CLAIM.replace("drill: mine, ", "") if "drill:" in claim else CLAIM
    text = text.replace("id: a, ", "") if "id: A" in claim else text
    with pytest.raises(ClaimsError) as caught:
        claims_in(tmp_path, text + claim + "\n")
    told = [(each.line, each.where, each.text) for each in caught.value.mistakes]
    assert any(line == 3 + claim.count("\n") and place == where for line, place, _ in told), told
    assert any(place == where and says in text for _, place, text in told), told


def test_all_mistakes_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    text = READS.replace("system: quorum", "system: quorun").replace("here, from", "her, from")
    with pytest.raises(ClaimsError) as caught:
        claims_in(tmp_path, text + "- {id: a, claim: c, source: s, drill: min, durability: no}\n")
    assert [each.line for each in caught.value.mistakes] == [1, 3, 4, 4, 4]


def test_an_id_is_unique_over_files(tmp_path: Path) -> None:
    with pytest.raises(
        ClaimsError, match=r"claims-1\.yaml.*`a` is the id of a claim in .*claims-0"
    ):
        claims_in(tmp_path, READS, READS)
