"""``localmed serve``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from localmed.cli.common import opened, settings_of
from localmed.cli.speaking import say


@click.command("serve")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; others than this machine's need TLS."
)
@click.option("--port", type=click.IntRange(1, 65535), default=8765, show_default=True, help="TCP port.")
@click.option("--tls-cert", type=click.Path(path_type=Path, dir_okay=False), help="Certificate chain (PEM).")
@click.option("--tls-key", type=click.Path(path_type=Path, dir_okay=False), help="Its private key (PEM).")
@click.option("--plain", is_flag=True, help="Listen on the network without TLS: only behind a proxy that has it.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that answer.")
@click.pass_context
def command(
    ctx: click.Context, host: str, port: int, tls_cert: Path | None, tls_key: Path | None, plain: bool, workers: int
) -> None:
    """Serve localmed to browsers, until Ctrl-C or SIGTERM.

    The models are in a process of their own beside it (see localmed host). Where settings, models or the version are
    others than when the canary questions passed, they are asked first: settings that lose one do not begin to serve,
    those of before do; for another version exit code 7 tells. The first start prints a one-time code, with
    which the first page makes the administrator's account.
    """
    from localmed.operations import accounts, canary_gate
    from localmed.site import Site
    from localmed.web import serving

    address = serving.Address(host, port, tls_cert, tls_key, plain).checked()
    settings = settings_of(ctx)
    code = accounts.first_code(settings.data)

    def ready() -> None:
        say("web.serve.ready", url=address.url)
        if code:
            say("web.serve.code", code=code)

    with opened(ctx) as session:
        say("web.serve.loading", err=True)
        chosen = canary_gate.before_serving(session)
        if chosen is not session.settings:
            os.environ["LOCALMED_CONFIG"] = str(settings.data / canary_gate.PASSED)  # of every process beside this one
        with Site(chosen) as site, serving.model_host(site) as hosted:
            if not hosted:
                say("web.serve.no_host", err=True)
            serving.run(chosen, address, workers, ready)
