"""``localmed reindex``."""

from __future__ import annotations

import click

from localmed.cli.common import json_option, opened, print_json, work_shown
from localmed.cli.speaking import say


@click.command("reindex")
@click.option("--again", is_flag=True, help="Also if the library is of this encoder already.")
@json_option
@click.pass_context
def command(ctx: click.Context, again: bool, as_json: bool) -> None:
    """Bring the library to the encoder that was chosen, without reading the files again.

    The old state answers until the new one is whole. Ctrl-C changes nothing, and the next run goes on.
    """
    from localmed.operations import changes

    with opened(ctx) as session:
        encoder = session.site.chosen_encoder.identity.stored_as
        with work_shown(not as_json) as hooks:
            generation = changes.reindex(session, again, hooks)
    if as_json:
        print_json({"generation": generation, "encoder": encoder})
    elif generation:
        say("reindex.done", number=generation, encoder=encoder)
    else:
        say("reindex.nothing", encoder=encoder)
