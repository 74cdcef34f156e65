"""A page as a browser takes it apart: its elements, and what it would run or fetch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

_VOID = {"meta", "link", "img", "br", "input"}


class Page(HTMLParser):
    """Elements in order, with attributes and text; fails where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, Mapping[str, str]]] = []
        self.texts: list[list[str]] = []
        self._open: list[tuple[str, int]] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self.texts.append([])
        if tag not in _VOID:
            self._open.append((tag, len(self.elements) - 1))

    def handle_endtag(self, tag: str) -> None:
        opened, _ = self._open.pop()
        assert opened == tag, (opened, tag)

    def handle_data(self, data: str) -> None:
        for _, number in self._open:
            self.texts[number].append(data)

    def text(self, tag: str, **having: str) -> list[str]:
        """The text of each element of a kind that has these attributes (`class_` for class)."""
        wanted = {name.rstrip("_"): value for name, value in having.items()}
        return [
            "".join(text)
            for (name, given), text in zip(self.elements, self.texts, strict=True)
            if name == tag and wanted.items() <= given.items()
        ]

    @property
    def kinds(self) -> set[tuple[str, frozenset[str]]]:
        """What elements there are, with the names of their attributes."""
        return {(tag, frozenset(given)) for tag, given in self.elements}

    @property
    def addresses(self) -> set[str]:
        """All that is linked or fetched, data by its kind alone."""
        named = ("href", "src", "action", "srcset", "data", "poster")
        every = [given[name] for _, given in self.elements for name in named if name in given]
        return {each.split(",")[0] if each.startswith("data:") else each for each in every}

    @property
    def strip(self) -> dict[str, Any]:
        """The samples of the page."""
        (text,) = self.text("script", type="application/json")
        found: dict[str, Any] = json.loads(text)
        return found
