"""The rules of a site: named before they are made, and made when a role is performed."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from localmed.answering.role_table import ROLES, RoleRules
from localmed.config import Settings
from localmed.domain import SearchFilter
from localmed.site import workspace as workspaces
from localmed.site.workspace import CachingEncoder
from tests.fakes import HashedWords, import_into, opened, write

if TYPE_CHECKING:
    from localmed.domain.ports import Vectors


@pytest.mark.slow
def test_every_role_that_is_named_has_its_rules(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "data")
    import_into(settings, write(tmp_path / "ward", {"a.txt": "Aspirin\n\nAspirin thins the blood.\n"}))
    with opened(settings, HashedWords()) as session, session.workspace() as workspace:
        rules = RoleRules(workspace.library, session.site)
        assert all(callable(rules[name]) for name in rules)
        assert set(rules) == set(rules._made), "what makes a role's rules makes no role that is not named"
        assert set(rules) <= set(ROLES)
        assert len(rules) == len(set(rules))


def test_rules_go_with_their_run_and_take_the_questions_texts_with_them(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "data")
    import_into(settings, write(tmp_path / "ward", {"a.txt": "Aspirin\n\nAspirin thins the blood.\n"}))
    with opened(settings, HashedWords()) as session, session.workspace() as workspace:
        gc.collect()
        gc.disable()  # what stands in a cycle stays until the collector comes by, in a busy server for minutes
        try:
            rules = RoleRules(workspace.library, session.site)
            assert all(callable(rules[name]) for name in rules)
            texts = weakref.ref(rules)
            del rules
            assert texts() is None
        finally:
            gc.enable()


@pytest.mark.slow
def test_a_question_is_encoded_once_in_its_run_and_alone(tmp_path: Path) -> None:
    class Counting(HashedWords):
        def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
            encoded.extend([tuple(texts)] if kind == "query" else [])
            return super().encode(texts, kind)

    question, encoded = "What thins the blood of adults with fever?", list[tuple[str, ...]]()
    settings = Settings(tmp_path / "data")
    import_into(settings, write(tmp_path / "ward", {"a.txt": "Aspirin\n\nAspirin thins the blood of adults.\n"}))
    with opened(settings, Counting()) as session:
        encoded.clear()
        session.ask(question, SearchFilter())
    assert [texts for texts in encoded if question in texts] == [(question,)]


@pytest.mark.slow
def test_a_question_imports_no_other_workflows_rules(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from localmed.config import Settings\n"
        "from localmed.domain import SearchFilter; from tests.fakes import HashedWords\n"
        "from localmed.site.session import Session, local_caller; from localmed.site.site import Site\n"
        "settings = Settings(Path(sys.argv[1]))\n"
        "with Site(settings, HashedWords()) as site:\n"
        "    Session(site, local_caller(settings)).ask('What thins blood?', SearchFilter())\n"
        "print(*sorted(name for name in sys.modules if name.startswith('localmed.')))"
    )
    settings = Settings(tmp_path / "data")
    import_into(settings, write(tmp_path / "ward", {"a.txt": "Aspirin\n\nAspirin thins the blood.\n"}))
    output = subprocess.run(
        [sys.executable, "-c", script, str(settings.data)], capture_output=True, text=True, check=True, timeout=120
    )
    known = set(output.stdout.split())
    assert "localmed.workflows.receipts" in known
    for name in ("orders_rules", "guidance_rules"):
        assert f"localmed.answering.{name}" not in known
    for name in ("explain", "ebm", "verify", "thorough", "departments", "plan"):
        assert f"localmed.workflows.{name}" not in known


def test_each_text_is_encoded_once_for_each_kind() -> None:
    encoder = HashedWords()
    caching = CachingEncoder(encoder)
    caching.encode(["renal failure", "dose"], "passage")
    caching.encode(["dose", "dose", "question"], "passage")
    caching.encode(["dose"], "query")
    assert encoder.encoded == ["renal failure", "dose", "question", "dose"]
    assert caching.identity == encoder.identity


def test_no_more_texts_are_kept_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspaces, "CACHED", 2)
    encoder = HashedWords()
    caching = CachingEncoder(encoder)
    for text in ("a", "b", "c"):
        caching.encode([text], "query")
    assert np.array_equal(caching.encode(["c", "a", "b"], "query"), encoder.encode(["c", "a", "b"], "query"))
    assert len(caching._cache) <= 3
