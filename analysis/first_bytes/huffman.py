"""The Huffman code of HTTP/2's headers (RFC 7541, appendix B), as far as it spells printable ASCII.

The code is canonical: it follows from how long each symbol's code is. Up to 15 bits long are those
of printable ASCII but for the backslash, and nothing else.
"""

from __future__ import annotations

from functools import cache

_SYMBOLS = {
    5: "012aceiost",
    6: " %-./3456789=A_bdfghlmnpru",
    7: ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz",
    8: "&*,;XZ",
    10: '!"()?',
    11: "'+|",
    12: "#>",
    13: "\0$@[]~",
    14: "^}",
    15: "<`{",
}
_LONGEST = 15


def decode(coded: bytes) -> str | None:
    """The text that is `coded`; None where it has more than printable ASCII in it.

    Of a text that is cut short, what is whole is returned.
    """
    codes, text, code, length = _codes(), [], 0, 0
    for octet in coded:
        for bit in range(7, -1, -1):
            code, length = code << 1 | (octet >> bit & 1), length + 1
            if symbol := codes.get((length, code)):
                if symbol == "\0":
                    return None
                text.append(symbol)
                code = length = 0
            elif length > _LONGEST:
                return None
    return "".join(text)


@cache
def _codes() -> dict[tuple[int, int], str]:
    codes: dict[tuple[int, int], str] = {}
    code = previous = 0
    for length, symbols in _SYMBOLS.items():
        code <<= length - previous
        previous = length
        for symbol in symbols:
            codes[length, code] = symbol
            code += 1
    return codes
