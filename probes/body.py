"""The bytes of an object, made from a seed: the same function as in ``oneshot/src/body.rs``.

SplitMix64 (Steele, Lea and Flood, 2014) as little-endian 64-bit words, cut off at the length.
"""

from __future__ import annotations

_GAMMA = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def body(seed: int, length: int) -> bytes:
    """Return the ``length`` bytes of the body of ``seed`` (0 <= seed < 2**64)."""
    import numpy as np

    index = np.arange(1, (length + 7) // 8 + 1, dtype=np.uint64)
    z = np.uint64(seed) + index * np.uint64(_GAMMA)  # all arithmetic is modulo 2**64
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    z ^= z >> np.uint64(31)
    return z.astype("<u8").tobytes()[:length]


def word(seed: int, index: int) -> int:
    """Return the word of that index of the body of ``seed``: bytes 8 * index and on."""
    mask = 2**64 - 1
    z = (seed + (index + 1) * _GAMMA) & mask
    z = (z ^ z >> 30) * _FIRST & mask
    z = (z ^ z >> 27) * _SECOND & mask
    return z ^ z >> 31
