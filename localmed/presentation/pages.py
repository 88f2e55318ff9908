"""Pages by Jinja2: what is filled in is escaped and neutralised, a name that is not given is an error.

The templates lie in ``templates/``. A page loads nothing: its style stands in it, and it holds no script.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from localmed.presentation.neutral import neutral

if TYPE_CHECKING:
    from jinja2 import Environment

# Nothing but the page's own style: no script, no image from elsewhere, no form, no frame.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(template: str, **values: Any) -> str:
    """The page that ``template`` makes of ``values``."""
    return _environment().get_template(template).render(policy=POLICY, **values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files("localmed.presentation").joinpath("templates")
    return Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text("utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: neutral(value) if type(value) is str else value,
    )
