"""``wanlat view``: bundles in a browser on this machine, and runs that are under way."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from wanlat import options as o
from wanlat.output import inform
from wanlat.results import messages_of
from wanlat.running import heed_interruptions
from wanlat.topologies.errors import UserError


def view(
    directory: Annotated[
        Path, o.argument("DIR", "Where bundles are", exists=True, file_okay=False)
    ] = Path("results"),
) -> None:
    """Show bundles in a browser, and follow runs that are under way.

    Prints an address of this machine alone, with a token in it, and serves until Ctrl-C. Bundles
    are only read.
    """
    if not directory.is_dir():  # a device, which Typer lets pass
        raise UserError(f"{directory} is no directory. Name one that bundles are in.")
    from wanlat.analysis.view.server import serve

    heed_interruptions()
    server, address = serve(directory, messages_of)
    inform(f"view: {address}")
    try:
        server.serve_forever()
    finally:
        server.server_close()
