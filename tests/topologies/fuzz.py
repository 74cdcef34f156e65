"""Topology files by the hundred thousand: right, spoilt and hostile, each from a seed.

`python -m tests.topologies.fuzz [--files N] [--seed S] [--first I]` loads and resolves them on all
processors. Each must give a lab's plan that makes sense, or an error that a terminal can print;
what does anything else, or takes longer than ten seconds of processor time, is printed.
"""

from __future__ import annotations

import argparse
import copy
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from wanlat.topologies.load import TopologyError, load
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Impairment, Plan, resolve
from wanlat.topologies.shapes import QUANTILES
from wanlat.topologies.units import Duration, Rate

SLOWEST_S = 10.0  # of processor time, for one file; the slowest take one, a bomb takes years
_MEMORY_BYTES = 4 * 2**30
_CHUNK = 500


@dataclass(frozen=True)
class Failure:
    """A file that gave neither a plan nor a clear error."""

    index: int
    kind: str
    content: bytes
    reason: str

    def __str__(self) -> str:
        """The way to make it again, what happened, and the file."""
        shown = self.content[:4000]
        cut = f" (the first 4000 of {len(self.content)} bytes)" if shown != self.content else ""
        return (
            f"--first {self.index} --files 1 ({self.kind}): {self.reason}\n"
            f"the file{cut}: {shown!r}\n"
        )


# What right files are made of.

NAMES = ["a", "dc1", "paris", "tokyo-2", "0", "x" * 32, "n-", "eu-west-1", "lima", "no-where"]


def right(rng: random.Random) -> dict[str, Any]:
    """A topology file without a mistake."""
    names = rng.sample(NAMES, rng.choice([1, 2, 2, 3, 3, 4]))
    sites: list[dict[str, Any]] = []
    for index, name in enumerate(names):
        # No count makes a name such as these, and no count makes one too long.
        nodes: Any = [f"n{index}q{number}" for number in range(rng.randint(1, 3))]
        if rng.random() < 0.4 and len(name) < 28:
            (nodes,) = rng.choices([1, 2, 10, 300], [40, 40, 18, 2])
        site: dict[str, Any] = {"name": name, "nodes": nodes}
        if rng.random() < 0.4:
            site["lan"] = _link(rng, "rtt")
        elif rng.random() < 0.2:
            ways = rng.choice([["up"], ["down"], ["up", "down"]])
            site["access"] = {way: _link(rng, "delay") for way in ways}
        sites.append(site)
    pairs: list[dict[str, Any]] = []
    complete = True
    for a, b in combinations(names, 2):
        ends = [(a, b), (b, a)]
        rng.shuffle(ends)
        given = rng.choice(["default", "both", "one way", "each way"])
        complete &= given in ("both", "each way")
        if given == "both":
            pairs.append({"between": list(ends[0]), **_link(rng, "rtt")})
        elif given != "default":
            for start, end in ends[: 1 if given == "one way" else 2]:
                pairs.append({"from": start, "to": end, **_link(rng, "delay")})
    rng.shuffle(pairs)
    links: dict[str, Any] = {"pairs": pairs} if pairs or rng.random() < 0.5 else {}
    if not complete or rng.random() < 0.3:
        links["default"] = _link(rng, "rtt")
    document: dict[str, Any] = {"name": rng.choice(NAMES), "sites": sites}
    if links or len(sites) > 1:
        document["links"] = links
    if rng.random() < 0.3:
        document["description"] = rng.choice(["", "three offices", "“Größe” – 大小 🌍", "a: b # c"])
    return document


def _link(rng: random.Random, base: str) -> dict[str, Any]:
    length = rng.choice([0, 1, rng.randint(1, 10**4), rng.randint(1, 10**12), 10**8, 1800 * 10**9])
    link: dict[str, Any] = {base: str(Duration(length))}
    if length and rng.random() < 0.6:
        link.update(_jitter(rng, length))
    if rng.random() < 0.3:
        link["loss"] = _part(rng) if rng.random() < 0.5 else _bursts(rng)
    if rng.random() < 0.2:
        link["duplicate"] = _part(rng)
    if rng.random() < 0.2:
        link["corrupt"] = _part(rng)
    if rng.random() < 0.2:
        link["reorder"] = rng.choice([True, False, "0%"] + (["1%", 0.25, 1e-9] if length else []))
    if rng.random() < 0.3:
        link["rate"] = str(Rate(rng.choice([1, rng.randint(1, 10**12)])))
        if rng.random() < 0.5:
            link["queue"] = rng.choice([1514, "64KiB", "1MB", rng.randint(1514, 2**40)])
    return link


def _jitter(rng: random.Random, length: int) -> dict[str, Any]:
    kind = rng.choice([None, "uniform", "normal", "pareto", "table"])
    fields: dict[str, Any] = {}
    # As much as the smallest draw leaves: pareto's is -0.61, that of a table of 40 above -6.4.
    share = {None: 1.0, "uniform": 1.0, "normal": 0.27, "pareto": 1.6, "table": 0.15}[kind]
    jitter = int(length * share * rng.choice([1, 0.5, rng.random()]))
    if not jitter:
        return {}
    fields["jitter"] = str(Duration(jitter))
    if kind is not None:
        fields["distribution"] = kind
    if kind == "table":
        unit = rng.choice([1, 1e-3, 1e6, 1e-300])
        samples = [round(rng.gauss(5, 2), 3) * unit for _ in range(rng.randint(2, 40))]
        fields["table"] = [*samples, 1.5 * max(samples) + unit]
    if rng.random() < 0.3:
        fields["correlation"] = rng.choice(["25%", 0, 0.99, "1e-3"])
    return fields


def _part(rng: random.Random) -> Any:
    return rng.choice([0, 1, "0%", "100%", "0.5%", 0.01, "1e-7", rng.random(), 5e-324])


def _bursts(rng: random.Random) -> dict[str, Any]:
    fields: dict[str, Any] = {"p": rng.choice(["1%", 1, 1e-9]), "r": rng.choice(["30%", 0.5, 1])}
    if rng.random() < 0.5:
        fields["h"] = rng.choice(["0%", "10%", 0.5])
    if rng.random() < 0.5:
        fields["k"] = rng.choice(["100%", "99.9%", 0.5])
    return fields


# What spoils them.

KEYS = [
    "name", "description", "sites", "nodes", "lan", "access", "up", "down", "links", "default",
    "pairs", "between", "from", "to", "rtt", "delay", "jitter", "distribution", "table",
    "correlation", "reorder", "loss", "p", "r", "h", "k", "duplicate", "corrupt", "rate", "queue",
    "file", "column", "<<", "=", "latency", "", "RTT", "name ", "näme",
]  # fmt: skip
HOSTILE: list[Any] = [
    None, True, False, 0, 1, -1, 2, 100, 60_000, 60_001, 10**9, -(2**63), 2**63, 2**64, 10**40,
    10**400, 0.0, -0.0, 0.5, 1.5, 1e-320, 1e308, float("nan"), float("inf"), float("-inf"), "", " ",
    "a", "n1", "dc1", "-a", "A", "x" * 33, "x" * 5000, "1" * 5000, "0." + "1" * 400, "1e999",
    "1e-999", "100ms", "0ms", "1ns", "3600s", "3601s", "-1ms", "1d", "10", "1:30", "010", "0x1f",
    "0b1", "1_0", "99999999999999999999s", "9223372036854775807ns", "0.0000000000000000001s",
    "１ms", "1 ms", "1ms\n", "100%", "101%", "-1%", "0.0000001%", "1e-30%", "5e-324", "NaN", "nan",
    ".nan", ".inf", "-.inf", "1gbit", "0bit", "10mbps", "1514", "64KiB", "1KiB", "normal",
    "uniform", "pareto", "table", "paretonormal", "yes", "no", "on", "null", "~", "2026-01-31",
    "2026-01-31T12:00:00Z", "\0", "\x07", "\x1b[31m", "\x85", "\u2028", "\u202e", "\ufeff",
    "\ufffe", "🌍" * 50, "é", "e\u0301", "../../../etc/passwd", "/dev/zero", "/dev/stdin",
    "/dev/tty", "/proc", "/proc/self/mem", "nowhere.txt", "a\nb", "a: b", "- a", "#", "{", "[", "'",
    '"', "&a", "*a",
    "!!python/object/apply:os.system [true]", "${HOME}", "$(id)", "%s%s%n", "{0}", "`", "|", ">",
    [], {}, [[]], [{}], [None], [1, 1], [1, 2], [1e15, -1e15], [0, 5e-324], [1, "x"], ["a", "a"],
    {"": None}, {"p": 1, "r": 1}, {"p": 0, "r": 0}, {"p": "1%"}, {"file": "x", "column": "y"},
    {"file": 1}, {"rtt": 0}, {"rtt": "1ms", "jitter": "1ms"}, {"delay": "1ms"}, list(range(30)),
    [[[[[[[[[[]]]]]]]]]],
]  # fmt: skip


def spoilt(rng: random.Random) -> Any:
    """A right file with one to four parts replaced, removed, repeated, renamed or added."""
    document = right(rng)
    for _ in range(rng.choice([1, 1, 2, 4])):
        here: Any = document
        while rng.random() < 0.75 and (inner := _containers(here)):
            here = rng.choice(inner)
        if isinstance(here, dict):
            _spoil_mapping(rng, here)
        else:
            _spoil_list(rng, here)
    return document


def _containers(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value
    return [item for item in inner if isinstance(item, dict | list)]


def _spoil_mapping(rng: random.Random, here: dict[Any, Any]) -> None:
    key = rng.choice([*here, "rtt"]) if rng.random() < 0.6 else rng.choice(KEYS)
    change = rng.random()
    if change < 0.6:
        here[key] = copy.deepcopy(rng.choice(HOSTILE))
    elif change < 0.8:
        here.pop(key, None)
    elif change < 0.9:
        here[rng.choice(KEYS)] = here.pop(key, None)
    else:
        here[rng.choice([1, None, True, 1.5, "\ud7ff", "k" * 200])] = rng.choice(HOSTILE)


def _spoil_list(rng: random.Random, here: list[Any]) -> None:
    change, place = rng.random(), rng.randint(0, max(0, len(here) - 1))
    if change < 0.5 or not here:
        here[place : place + 1] = [copy.deepcopy(rng.choice(HOSTILE))]
    elif change < 0.7:
        del here[place]
    elif change < 0.97:
        here.append(copy.deepcopy(here[place]))
    else:
        here.extend(copy.deepcopy(here[place]) for _ in range(rng.choice([5, 30, 300])))


SPLICES = [
    "\n", "\n\n", "\t", " ", "  ", ": ", ":", "- ", "-", "? ", "{", "}", "[", "]", ",", "#", "'",
    '"', "|\n", ">-\n", "|9\n", "&a ", "*a", "*b", "<<: *a\n", "<<: {", "!!int ", "!!binary ",
    "!!set ", "!!omap ", "!!python/object:os.system ", "!!python/name:os.system ", "!x ", "!<",
    "!<tag:yaml.org,2002:int> ", "---\n", "...\n", "%YAML 1.1\n", "%YAML 9.9\n---\n", "%TAG ! x\n",
    "\\U", "\\x", "\0", "\x85", "\u2028", "\ufeff", "\x7f", "\r", "\r\n", "@", "`", "%", "= ",
    "~", "null", "0x", ".", "..", "e5", "_", "1e400", "yes", "2026-01-31", "\U0001f30d", "\u0660",
]  # fmt: skip


def spliced(rng: random.Random) -> bytes:
    """The text of a right file, cut and spliced."""
    text = written(rng, right(rng)).decode()
    for _ in range(rng.choice([1, 1, 2, 5])):
        start = rng.randint(0, len(text))
        end = start + rng.choice([0, 0, 0, 1, 2, 10, 100])
        part = rng.choice(SPLICES) if rng.random() < 0.7 else rng.choice(KEYS)
        if rng.random() < 0.1:
            part = text[rng.randint(0, len(text)) :][: rng.choice([10, 100, 500])]
        text = text[:start] + part + text[end:]
    return text.encode()


def mangled(rng: random.Random) -> bytes:
    """The bytes of another file, changed, cut, doubled or cut off."""
    content = bytearray(hostile(rng) if rng.random() < 0.2 else written(rng, right(rng)))
    for _ in range(rng.choice([1, 1, 2, 5, 30])):
        place = rng.randint(0, len(content))
        change = rng.random()
        if change < 0.4 and place < len(content):
            content[place] ^= 1 << rng.randrange(8)
        elif change < 0.6:
            content[place:place] = rng.randbytes(rng.choice([1, 1, 4]))
        elif change < 0.8:
            del content[place : place + rng.choice([1, 1, 3, 20])]
        elif change < 0.9:
            content[place:place] = content[place : place + rng.choice([2, 20, 200])]
        else:
            del content[place:]
    return bytes(content)


def noise(rng: random.Random) -> bytes:
    """Bytes or characters at random; some begin as a file of another encoding does."""
    size = rng.choice([0, 1, 2, 10, 100, 1000])
    if rng.random() < 0.5:
        return rng.choice([b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"]) + rng.randbytes(size)
    signs = "".join(SPLICES) + "abc 012 \n\n"
    return "".join(rng.choice(signs) for _ in range(size)).encode()


def hostile(rng: random.Random) -> bytes:
    """A file made to break a loader: deep, endless, multiplying, foreign, huge."""
    (size,) = rng.choices([10, 60, 300, 3000], [45, 40, 12, 3])
    head = "name: t\nsites: [{name: a, nodes: [n1]}, {name: b, nodes: [n2]}]\n"
    link = f"{head}links: {{default: {{rtt: 10ms, jitter: 1ms, "
    number = rng.choice(["9", "1.", ".1", "0.0", "1e", "-", "0x", "1_", "1:"])
    odd = rng.choice(["\\ud800", "\\x00", "\\e[2J", "\\u202e", "\\U0010ffff", "\\N", "\\q"])
    tag = rng.choice(["!!python/object:os.system", "!!python/tuple", "!!set", "!!int", "!", "!e!x"])
    text = rng.choice([
        rng.choice("[{-?:") * size,
        rng.choice(["- ", "? ", "a: {", "[[", "{a: [", "- - ", "? - "]) * size,
        "".join(" " * depth + "a:\n" for depth in range(min(size, 300))),
        "[" * min(size, 60) + "]" * min(size, 60),
        _multiplied(rng, "[x, x]", "[{}]"),
        _multiplied(rng, "{x: 1}", "{{<<: [{}]}}"),
        f"{head}links: &a {{default: *a}}\n", f"{head}<<: &m {{<<: *m}}\n", "&a [*a, *a]",
        f"a0: &a0 [x]\n{''.join(f'a{i}: &a{i} [*a{i - 1}]{chr(10)}' for i in range(1, size))}",
        f"{head}{'links: {default: {rtt: 1ms}}' + chr(10)}" * min(size, 20),
        f"{link}{', '.join(f'loss: {i}' for i in range(size))}}}}}",
        f"{link}{', '.join(f'k{i}: {i}' for i in range(size))}}}}}",
        f"{link}distribution: table, table: [{'1, ' * size}2]}}}}",
        f"{link}distribution: table, table: [{number * size}, 2]}}}}",
        f"{link}loss: {number * size}}}}}", f"{link}rate: {number * size}bit}}}}",
        f"name: t\nsites: [{{name: a, nodes: {number * size}}}]\n",
        f"name: {'x' * size * 100}\nsites: [{{name: a, nodes: 1}}]\n",
        f"name: t\n{'y' * size * 10}: 1\nsites: [{{name: a, nodes: 1}}]\n",
        f'name: "{odd * min(size, 60)}"\nsites: [{{name: a, nodes: 1}}]\n"{odd}": {odd}\n',
        f"name: t\nsites: [{'{name: a, nodes: [n1]}, ' * size}]\n",
        f"name: t\nsites: [{', '.join(f'{{name: s{i}, nodes: 500}}' for i in range(size))}]\n",
        f"{head}links: {{pairs: [{'{between: [a, b], rtt: 1ms}, ' * min(size, 300)}]}}\n",
        f"{head}links: {{pairs: [{'{from: a, to: z, delay: 1}, ' * min(size, 300)}]}}\n",
        f"name: {tag} t\nsites: {tag} [{{name: a, nodes: {tag} 1}}]\n",
        f"{tag * min(size, 300)} a", f"%TAG ! tag:{'x' * size}\n---\n!a b",
        f"name: |\n{(' ' * rng.randint(1, 9) + 'a' + chr(10)) * size}sites: 1\n",
        f"name: t\nsites:\n{chr(10) * size}- {{name: a, nodes: 1}}\n{'# c' * size}",
        "".join(f"&a{i} x: *a{i}\n" for i in range(min(size, 300))),
    ])  # fmt: skip
    return text.encode()


def _multiplied(rng: random.Random, seed: str, row: str) -> str:
    """Lists or merges of the list before: ten more of everything with every line."""
    lines = [f"a0: &a0 {seed}"]
    for index in range(1, rng.choice([2, 5, 14, 40])):
        below = ", ".join([f"*a{index - 1}"] * rng.choice([2, 10]))
        lines.append(f"a{index}: &a{index} {row.format(below)}")
    return "\n".join(lines)


def written(rng: random.Random, document: Any) -> bytes:
    """A document as YAML: in blocks, in braces or both; or as JSON, which is YAML and faster."""
    if rng.random() < 0.6:
        indent = rng.choice([None, None, 1])
        return json.dumps(document, indent=indent, ensure_ascii=False).encode("utf-8", "replace")
    return yaml.dump(  # type: ignore[no-any-return]
        document,
        Dumper=yaml.CSafeDumper,
        encoding="utf-8",
        allow_unicode=rng.random() < 0.8,
        sort_keys=rng.random() < 0.3,
        default_flow_style=rng.choice([None, None, False, True]),
        width=rng.choice([40, 80, 10**6]),
    )


KINDS = {"right": 30, "spoilt": 30, "spliced": 17, "mangled": 12, "hostile": 6, "noise": 5}
_KINDS, _WEIGHTS = list(KINDS), list(KINDS.values())


def file_of(seed: int, index: int) -> tuple[str, bytes]:
    """The kind and the content of file number `index`: the same for the same seed."""
    rng = random.Random(f"{seed}:{index}")
    (kind,) = rng.choices(_KINDS, _WEIGHTS)
    match kind:
        case "right":
            content = written(rng, right(rng))
        case "spoilt":
            content = written(rng, spoilt(rng))
        case "spliced":
            content = spliced(rng)
        case "mangled":
            content = mangled(rng)
        case "hostile":
            content = hostile(rng)
        case _:
            content = noise(rng)
    return kind, content


# What must come of them.


def check(kind: str, content: bytes, file: Path) -> str:
    """Load and resolve: `plan` or `error`. AssertionError or anything else is a failure."""
    file.write_bytes(content)
    try:
        topology = load(file)
    except TopologyError as error:
        assert kind != "right", f"a right file is refused: {error}"
        check_error(error, file)
        return "error"
    check_plan(resolve(topology))
    if kind != "right" or len(content) % 8 == 0:  # some, for it takes time
        again = Topology.model_validate(topology.to_dict())
        assert again == topology, "written down it is another topology"
        assert resolve(again) == resolve(topology), "written down it gives another plan"
    return "plan"


def check_error(error: TopologyError, file: Path) -> None:
    """It can be printed as it is, says where, and is not endless."""
    text = str(error)
    assert error.exit_code == 2
    assert error.mistakes, "an error without a mistake"
    assert text.replace("\n", "").isprintable(), f"not printable: {text[:500]!r}"
    assert len(text) < 300_000, f"a message of {len(text)} characters"
    for mistake in error.mistakes[:200]:
        assert mistake.text, "a mistake without a text"
        assert str(mistake).startswith(f"{file}"), str(mistake)[:500]
        assert mistake.line is None or mistake.line >= 1


def check_plan(plan: Plan) -> None:
    """It is a network that can be built."""
    assert plan.nodes
    assert len({node.address for node in plan.nodes}) == len(plan.nodes)
    assert len({node.name for node in plan.nodes}) == len(plan.nodes) == len(plan.lan_links)
    assert len(plan.wan_links) == len(plan.sites) * (len(plan.sites) - 1) // 2
    ways = [way for lan in plan.lan_links for way in (lan.up, lan.down)]
    ways += [way for wan in plan.wan_links for way in (wan.forward, wan.backward)]
    for way in {id(way): way for way in ways}.values():  # many share one
        check_impairment(way)
    first, last = plan.nodes[0].name, plan.nodes[-1].name
    lowest, highest = plan.range_ms(first, last)
    assert 0 <= lowest <= plan.rtt_ms(first, last) <= highest


def check_impairment(way: Impairment) -> None:
    """Counts are whole and none is negative, probabilities are some, and so is every delay."""
    for count in (way.delay_ns, way.jitter_ns, way.rate_bps or 0, way.queue_bytes or 0):
        assert isinstance(count, int) and 0 <= count < 2**63, way
    for part in (way.correlation, way.overtake, way.loss, way.duplicate, way.corrupt):
        assert 0 <= part <= 1, way
    assert 0 <= way.loss_probability <= 1, way
    assert way.distribution in ("uniform", "normal", "pareto", "table")
    assert len(way.table) == (QUANTILES if way.distribution == "table" else 0)
    assert list(way.table) == sorted(way.table)
    low, high = way.range_ns
    assert 0 <= low <= way.delay_ns <= high < 2**63, way
    drawn = way.table[0] if way.table else -1.0 if way.distribution == "uniform" else -0.6
    assert way.delay_ns + way.jitter_ns * drawn > -1, way


# On all processors.


class _TooSlow(BaseException):
    """Not an Exception, so that nothing takes it for one of its own."""


def _too_slow(*_: Any) -> None:
    raise _TooSlow(f"takes longer than {SLOWEST_S:g} s")


def limit_memory() -> None:
    """What multiplies without end is a MemoryError, not the end of the machine."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


def run_chunk(seed: int, first: int, count: int, directory: str) -> tuple[Counter[str], float, Any]:
    """Outcomes by kind, the slowest file's seconds, and the failures, of some of the files."""
    limit_memory()
    before = signal.signal(signal.SIGVTALRM, _too_slow)
    file = Path(directory) / f"{os.getpid()}.yaml"
    outcomes: Counter[str] = Counter()
    failures, slowest_s = [], 0.0
    for index in range(first, first + count):
        kind, content = file_of(seed, index)
        start = time.process_time()
        # Of this process's own time: a busy machine is no slow file.
        signal.setitimer(signal.ITIMER_VIRTUAL, SLOWEST_S)
        try:
            outcome = check(kind, content, file)
        except (Exception, _TooSlow) as problem:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            outcome = "failure"
            reason = "".join(traceback.format_exception(problem))
            failures.append(Failure(index, kind, content, reason))
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        slowest_s = max(slowest_s, time.process_time() - start)
        outcomes[f"{kind}: {outcome}"] += 1
    signal.signal(signal.SIGVTALRM, before)
    file.unlink(missing_ok=True)
    return outcomes, slowest_s, failures


def run(files: int, seed: int, first: int = 0) -> tuple[Counter[str], float, list[Failure]]:
    """Outcomes by kind, the slowest file's seconds, and the failures, of all files."""
    outcomes: Counter[str] = Counter()
    slowest_s, failures = 0.0, []
    chunks = [(at, min(_CHUNK, first + files - at)) for at in range(first, first + files, _CHUNK)]
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # files, not a disk's speed
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        try:
            for some, seconds, failed in _on_all(seed, chunks, directory):
                outcomes += some
                slowest_s = max(slowest_s, seconds)
                failures += failed
        except BrokenProcessPool:
            for left in Path(directory).iterdir():
                reason = "the process died (or stood beside one that did)"
                failures.append(Failure(-1, "unknown", left.read_bytes(), reason))
    return outcomes, slowest_s, failures


def _on_all(
    seed: int, chunks: list[tuple[int, int]], directory: str
) -> Iterator[tuple[Counter[str], float, Any]]:
    context = multiprocessing.get_context("spawn")  # a fork would take pytest's threads along
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        asked = [pool.submit(run_chunk, seed, at, count, directory) for at, count in chunks]
        for each in asked:
            yield each.result()


def new_seed() -> int:
    """A seed that nobody has chosen."""
    return random.SystemRandom().randrange(1, 10**9)


def main() -> int:
    """Fuzz as the command line says; 1 when a file failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=new_seed())
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    print(f"{asked.files} topology files from seed {asked.seed}", flush=True)
    start = time.monotonic()
    outcomes, slowest_s, failures = run(asked.files, asked.seed, asked.first)
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:8}  {outcome}")
    print(f"{time.monotonic() - start:.0f} s; the slowest file took {slowest_s:.2f} s")
    for failure in failures[:10]:
        print(f"\n--seed {asked.seed} {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
