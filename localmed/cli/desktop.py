"""``localmed desktop``."""

from __future__ import annotations

import threading

import click

from localmed.cli.common import settings_of
from localmed.cli.speaking import say


@click.command("desktop")
@click.option("--port", type=click.IntRange(1, 65535), default=8765, show_default=True, help="TCP port of the server.")
@click.option("--browser", is_flag=True, help="Use the system's browser even where a window of our own can be made.")
@click.pass_context
def command(ctx: click.Context, port: int, browser: bool) -> None:
    """Open localmed in a window on this machine; without the extra desktop in the system's browser.

    Starts localmed serve if it does not run, and ends it with the window. There is one window for a data folder.
    """
    from localmed import desktop

    data = settings_of(ctx).data
    with desktop.single(data), desktop.server(data, port) as url:
        if desktop.has_window() and not browser:
            desktop.show(data, url)
            return
        say("desktop.browser" if desktop.browse(url) else "desktop.no_browser", url=url)
        threading.Event().wait()
