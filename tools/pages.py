"""What mkdocs does besides: fills in the generated reference, and takes along what pages link to.

Pages lie in docs/ and link to files all over the checkout, as a code host shows them. Each such
file gets a place below ``source/`` of the site, pages of components as pages. A site that requests
anything of another host is refused.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel

from tools.reference import PARTS

CHECKOUT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=(?:#[^)\s]*)?\))")
_MARK = re.compile(r"^<!-- generated: (\S+) -->$", re.MULTILINE)
_REMOTE = re.compile(r"""<(?:script|img|iframe|link)[^>]+(?:src|href)=["']?(?:https?:)?//[^>]*>""")


def on_files(files: Files, config: Any) -> Files:
    """Add what pages link to outside of docs/, and what those link to in turn."""
    waiting = [file for file in files.documentation_pages() if file.abs_src_path]
    for file in waiting:
        text = Path(str(file.abs_src_path)).read_text("utf-8")
        for target in _targets(text, _home(file.src_uri)):
            place = _place(target, files)
            if files.get_file_from_path(place) is None:
                source = str(CHECKOUT / target)
                added = File.generated(
                    config, place, abs_src_path=source, inclusion=InclusionLevel.NOT_IN_NAV
                )
                files.append(added)
                if added.is_documentation_page():
                    waiting.append(added)
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Fill in what is generated, and lead links to where their files are in the site."""
    home = _home(page.file.src_uri)

    def led(match: re.Match[str]) -> str:
        target = _target(match[0], home)
        if target is None:
            return match[0]
        return os.path.relpath(_place(target, files), Path(page.file.src_uri).parent)

    return _LINK.sub(led, _MARK.sub(lambda match: PARTS[match[1]](), markdown))


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page that requests something of another host."""
    if tags := [tag for tag in _REMOTE.findall(output) if 'rel="canonical"' not in tag]:
        raise PluginError(f"{page.file.src_uri} asks another host: {tags[0]}")
    return output


def _home(place: str) -> str:
    """The directory in the checkout of a page of the site."""
    inside = place.removeprefix("source/") if place.startswith("source/") else f"docs/{place}"
    return str(Path(inside).parent)


def _targets(text: str, home: str) -> list[str]:
    targets = (_target(link, home) for link in _LINK.findall(text))
    return [target for target in targets if target is not None]


def _target(link: str, home: str) -> str | None:
    """The file in the checkout that a link leads to; None: elsewhere, or nowhere."""
    if re.match(r"[a-z]+:|/", link):
        return None
    target = os.path.normpath(Path(home) / link)
    place = CHECKOUT / target
    if place.is_dir():  # a code host lists it; here its page stands for it, or its first file
        first = [place / "README.md", place / "tables.md", *sorted(place.iterdir())]
        place = next((file for file in first if file.is_file()), place)
    return str(place.relative_to(CHECKOUT)) if place.is_file() else None


def _place(target: str, files: Files) -> str:
    """Where a file of the checkout is in the site."""
    inside = files.get_file_from_path(target.removeprefix("docs/"))
    if target.startswith("docs/") and inside is not None and not inside.inclusion.is_excluded():
        return inside.src_uri
    return f"source/{target}"
