"""Both languages make the same bytes of a seed."""

from __future__ import annotations

import subprocess

import pytest

from wanlat.emulator.binaries import binary
from wanlat.probes.body import body


def test_words_are_those_of_the_published_splitmix64() -> None:
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    words = body(1234567, 24)
    assert [int.from_bytes(words[i : i + 8], "little") for i in (0, 8, 16)] == published


@pytest.mark.parametrize("seed", [0, 1, 2**53 - 1, 2**64 - 1])
@pytest.mark.parametrize("length", [0, 1, 7, 8, 1024, 200_003])
def test_python_makes_the_bytes_that_oneshot_sends(seed: int, length: int) -> None:
    arguments = [str(binary("oneshot")), "body", "--seed", str(seed), "--bytes", str(length)]
    assert body(seed, length) == subprocess.run(arguments, check=True, capture_output=True).stdout
