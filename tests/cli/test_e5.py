"""The multilingual encoder in MiniLM's place: one command and ``reindex``, and Chinese is searched by meaning."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Localmed

QUESTION = "几点可以去看住院的亲人"  # no two characters in a row stand in the document


@pytest.mark.slow
def test_chinese_is_searched_by_meaning(copied: Localmed) -> None:
    before = copied.ok("search", QUESTION, "--json").json
    assert not before["dense"]
    assert "localmed reindex" in copied.ok("models", "use", "encoder", "e5").out
    assert "multilingual-e5-small" in copied("search", QUESTION).failed(5)
    assert copied.ok("reindex", "--json").json["encoder"].startswith("multilingual-e5-small")
    after = copied.ok("search", QUESTION, "--json").json
    assert after["dense"]
    assert after["sections"][0]["title"] == "探视指南"
