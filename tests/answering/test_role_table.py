"""Who serves which role; the rules of a site: named before they are made, and made when a role is performed."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest

from localmed.answering import guidance, orders, planning
from localmed.answering.asking import COHERENCE, RELEVANCE, ROLES, SELF_KNOWLEDGE, QuestionInput
from localmed.answering.role_table import ROLES as EVERY
from localmed.answering.role_table import By, RoleTable, role_rules, role_table
from localmed.answering.roles import Role
from localmed.config import Settings
from localmed.domain import SearchFilter
from localmed.domain.errors import BadSettings, UsageError
from localmed.safety.safety import SafetyInput
from localmed.site import workspace as workspaces
from localmed.site.workspace import CachingEncoder
from tests.fakes import HashedWords, import_into, opened, write

if TYPE_CHECKING:
    from localmed.domain.ports import Vectors


KNOWN = {role.name: role for role in ROLES}
RULES = {role.name: (lambda task: ("rules", task)) for role in ROLES if role is not SELF_KNOWLEDGE}


class Model:
    def perform(self, role: Role, task: Any) -> Any:
        return ("chat", task)


def chosen(usual: By, settings: Mapping[str, str] | None = None, model: Model | None = None) -> RoleTable:
    return role_table(KNOWN, usual, settings or {}, RULES, model)


@pytest.mark.parametrize(
    ("role", "rules", "usual"),
    [("medical_terms", True, "rules"), ("retrieval_question", True, "rules"), ("appraisal", False, "off")],
)
def test_what_tables_know_or_costs_a_call_a_study_is_no_models_unless_the_settings_say_so(
    role: str, rules: bool, usual: str
) -> None:
    only, served = {role: EVERY[role]}, {role: lambda _: "by rules"} if rules else {}
    assert role_table(only, "chat", {}, served, Model()).by(EVERY[role]) == usual
    assert role_table(only, "chat", {role: "chat"}, served, Model()).by(EVERY[role]) == "chat"


def test_a_model_serves_what_it_is_set_to() -> None:
    served = chosen("chat", {"coherence": "rules"}, Model())
    assert served.perform(RELEVANCE, 1) == ("chat", 1)
    assert served.perform(COHERENCE, 1) == ("rules", 1)
    assert served.without_chat().perform(RELEVANCE, 1) == ("rules", 1)
    assert chosen("rules", {"relevance": "chat"}, Model()).by(RELEVANCE) == "chat"
    assert chosen("rules", {}, Model()).by(COHERENCE) == "rules"


def test_a_role_that_is_off_is_not_performed() -> None:
    served = chosen("rules", {"relevance": "off"})
    assert "relevance" not in served.on
    assert "coherence" in served.on
    with pytest.raises(UsageError, match="relevance"):
        served.perform(RELEVANCE, 1)


@pytest.mark.parametrize(
    "settings", [{"poetry": "rules"}, {"relevance": "magic"}, {"self_knowledge": "rules"}], ids=str
)
def test_settings_that_ask_for_what_there_is_not(settings: dict[str, str]) -> None:
    with pytest.raises(BadSettings):
        chosen("rules", settings)


def test_a_role_with_a_model_of_its_own_is_served_by_it() -> None:
    class Tuned:
        def perform(self, role: Role, task: Any) -> Any:
            return ("tuned", task)

    own = {RELEVANCE.name: Tuned()}
    for usual in ("rules", "chat"):
        served = role_table(KNOWN, usual, {}, RULES, None, {RELEVANCE.name}, own)
        assert served.by(RELEVANCE) == "chat"
        assert served.perform(RELEVANCE, 1) == ("tuned", 1)
        assert served.perform(COHERENCE, 1) == ("rules", 1), "the others are served as before"
        assert served.without_chat().perform(RELEVANCE, 1) == ("rules", 1), "what it writes may be unusable"
    assert role_table(KNOWN, "chat", {"relevance": "rules"}, RULES, Model(), (), own).by(RELEVANCE) == "rules"


# --- rules ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("rules")
    settings = Settings(folder / "data")
    import_into(settings, write(folder / "ward", {"a.txt": "Aspirin\n\nAspirin thins the blood of adults.\n"}))
    return settings


TASKS: dict[str, Any] = {
    "plan": planning.PlanInput("Aspirin?", ("book", "graph")),
    "graph_terms": QuestionInput("Aspirin?"),
    "pseudo_document": planning.PseudoInput("Aspirin?", "book"),
    "plan_feedback": planning.FoundInput("Aspirin?", planning.SourcePlan(), ()),
    "medical_terms": orders.OrderInput("Aspirin 75 mg"),
    "retrieval_question": orders.RetrievalInput("Aspirin?"),
    "department": guidance.GuidanceInput("Aspirin?", ()),
    "final_check": guidance.CheckInput("Aspirin?", (), ()),
    "emergency_likeness": QuestionInput("Aspirin?"),
    "safety": SafetyInput("Aspirin?"),
    "safety_likeness": SafetyInput("Aspirin?"),
}


def test_every_role_that_is_named_has_its_rules_and_they_go_with_their_run(ward: Settings) -> None:
    with opened(ward, HashedWords()) as session, session.workspace() as workspace:
        gc.collect()
        gc.disable()  # what stands in a cycle stays until the collector comes by, in a busy server for minutes
        try:
            rules = dict(role_rules(workspace.library, session.site))
            assert set(rules) == set(TASKS) <= set(EVERY)
            for name, task in TASKS.items():
                rules[name](task)
            held = weakref.ref(rules["plan"])
            del rules
            assert held() is None
        finally:
            gc.enable()


@pytest.mark.slow
def test_a_question_is_encoded_once_in_its_run_and_alone(ward: Settings) -> None:
    class Counting(HashedWords):
        def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
            encoded.extend([tuple(texts)] if kind == "query" else [])
            return super().encode(texts, kind)

    question, encoded = "What thins the blood of adults with fever?", list[tuple[str, ...]]()
    with opened(ward, Counting()) as session:
        encoded.clear()
        session.ask(question, SearchFilter())
    assert [texts for texts in encoded if question in texts] == [(question,)]


@pytest.mark.slow
def test_a_question_imports_no_other_workflows_rules(ward: Settings) -> None:
    script = (
        "import sys; from pathlib import Path; from localmed.config import Settings\n"
        "from localmed.domain import SearchFilter; from tests.fakes import HashedWords\n"
        "from localmed.site.session import Session, local_caller; from localmed.site.site import Site\n"
        "settings = Settings(Path(sys.argv[1]))\n"
        "with Site(settings, HashedWords()) as site:\n"
        "    Session(site, local_caller(settings)).ask('What thins blood?', SearchFilter())\n"
        "print(*sorted(name for name in sys.modules if name.startswith('localmed.')))"
    )
    output = subprocess.run(
        [sys.executable, "-c", script, str(ward.data)], capture_output=True, text=True, check=True, timeout=120
    )
    known = set(output.stdout.split())
    assert "localmed.workflows.receipts" in known
    assert "localmed.answering.orders_rules" not in known
    for name in ("explain", "ebm", "verify", "thorough", "departments", "plan"):
        assert f"localmed.workflows.{name}" not in known


def test_each_text_is_encoded_once_for_each_kind_and_no_more_are_kept_than_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = HashedWords()
    caching = CachingEncoder(encoder)
    caching.encode(["renal failure", "dose"], "passage")
    caching.encode(["dose", "dose", "question"], "passage")
    caching.encode(["dose"], "query")
    assert encoder.encoded == ["renal failure", "dose", "question", "dose"]
    assert caching.identity == encoder.identity
    monkeypatch.setattr(workspaces, "CACHED", 2)
    bounded = CachingEncoder(encoder)
    for text in ("a", "b", "c"):
        bounded.encode([text], "query")
    assert np.array_equal(bounded.encode(["c", "a", "b"], "query"), encoder.encode(["c", "a", "b"], "query"))
    assert len(bounded._cache) <= 3
