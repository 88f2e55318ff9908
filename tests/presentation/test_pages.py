"""Pages escape and neutralise what they are filled with, and fail where a value is missing."""

from __future__ import annotations

from localmed.presentation.pages import environment, page


def test_what_is_filled_in_is_escaped_and_neutralised() -> None:
    template = environment("localmed.presentation").from_string("<p title='{{ title }}'>{{ title }}</p>")
    made = template.render(title="<script>'\x1b[31m5\u202e0 mg")
    assert made == "<p title='&lt;script&gt;&#39;50 mg'>&lt;script&gt;&#39;50 mg</p>"


def test_a_page_loads_nothing() -> None:
    made = page("page.html", language="zh")
    assert made.startswith("<!DOCTYPE html>")
    assert '<html lang="zh">' in made
    assert "default-src &#39;none&#39;" in made
    assert "<script" not in made
