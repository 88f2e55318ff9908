"""Asking in tiers: presets, priorities, what is missing, and possible conflicts, in both languages."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from localmed.cli.common import width_of
from tests.cli.conftest import Localmed, notes_of
from tests.words import phrase, said

QUESTION = "What is the maximum dose of paracetamol in adults?"
CHINESE = "成人对乙酰氨基酚的最大剂量是多少？"
COLLECTIONS = {
    # name: (kind, priority, edition, English, Chinese)
    "guidelines": ("guideline", 10, "2021-03", "The maximum dose of paracetamol in adults is 4 g a day.",
                   "成人对乙酰氨基酚的最大剂量为每日4克。"),
    "papers": ("literature", 20, "2024-05", "The maximum dose of paracetamol in adults should be 3 g a day.",
               "成人对乙酰氨基酚的最大剂量应为每日3克。"),
    "books": ("book", 30, "2020", "Paracetamol is also called acetaminophen. Gout is caused by uric acid crystals.",
              "痛风由尿酸结晶引起。"),
}  # fmt: skip


@pytest.fixture(scope="module")
def tiered(tmp_path_factory: pytest.TempPathFactory) -> Localmed:
    """Three collections of one document a language each, and one without any."""
    root = tmp_path_factory.mktemp("tiers")
    localmed = Localmed(root / "data")
    for name, (kind, priority, edition, english, chinese) in COLLECTIONS.items():
        folder = root / name
        folder.mkdir()
        (folder / "paracetamol.md").write_text(f"# Paracetamol\n\n{english}\n", "utf-8")
        (folder / "zh.md").write_text(f"# 对乙酰氨基酚\n\n{chinese}\n", "utf-8")
        manifest = root / f"{name}.toml"
        manifest.write_text(
            f'name = "{name}"\ntitle = "{name}"\nlicence = "test"\nkind = "{kind}"\npriority = {priority}\n'
            + "".join(f'[documents."{file}"]\nedition = "{edition}"\n' for file in ("paracetamol.md", "zh.md"))
        )
        localmed.ok("import", str(folder), "-c", name, "--manifest", str(manifest))
    localmed.ok("collections", "create", "leaflets", "--kind", "leaflet")
    return localmed


@pytest.fixture
def own(tiered: Localmed, tmp_path: Path) -> Localmed:
    """A copy of it, for settings of its own."""
    shutil.copytree(tiered.data, tmp_path / "data", symlinks=True)
    return Localmed(tmp_path / "data")


def answer_of(localmed: Localmed, *arguments: str) -> Any:
    return localmed.ok("ask", *arguments, "--json").json


def shown(answer: Any) -> set[str]:
    """The collections of the sections that an answer shows."""
    evidence = {piece["marker"]: piece["passage"] for piece in answer["evidence"]}
    return {evidence[section["best"]]["collection"] for section in answer["receipts"]["sections"]}


def test_a_preset_says_what_is_searched(tiered: Localmed) -> None:
    answer = answer_of(tiered, QUESTION, "--preset", "ebm")
    assert answer["searched"] == ["guidelines", "papers", "books"]
    (dose,) = answer["conflicts"]
    by_marker = {evidence["marker"]: evidence["passage"] for evidence in answer["evidence"]}
    sides = {
        by_marker[dose[side]]["collection"]: dose[name] for side, name in (("marker", "ours"), ("against", "theirs"))
    }
    assert "is 4 g a day" in sides["guidelines"]["quote"]
    assert "should be 3 g a day" in sides["papers"]["quote"]
    for citation in sides.values():
        text = by_marker[citation["marker"]]["text"]
        assert text[citation["start"] : citation["end"]] == citation["quote"]


@pytest.mark.parametrize(
    ("question", "says"),
    [(QUESTION, ("3 g", "4 g", "2021-03", "2024-05")), (CHINESE, ("3克", "4克", "2021-03", "2024-05"))],
)
def test_two_amounts_are_printed_side_by_side(tiered: Localmed, question: str, says: tuple[str, ...]) -> None:
    printed = tiered.ok("ask", question, "--preset", "ebm").out
    above, _, sections = printed.partition("\n 1. [")
    assert sections
    assert all(part in " ".join(above.split()) for part in says), above
    assert all(width_of(line) <= 80 for line in printed.splitlines())


@pytest.mark.slow
def test_what_a_preset_lacks_is_told_and_nothing_else_is_searched(tiered: Localmed, own: Localmed) -> None:
    answer = answer_of(tiered, "What causes gout?", "--preset", "patient")
    assert answer["searched"] == ["books"]
    assert shown(answer) == {"books"}
    assert notes_of(answer) == [said("workflow.skipped", names="leaflets, encyclopaedias")]
    (own.data / "localmed.toml").write_text('[tiers.presets]\nmine = [["leaflet"], ["nowhere"]]\n')
    ran = own.ok("ask", QUESTION, "--preset", "mine")
    assert "Searched: nothing" in ran.out
    patient = own.ok("ask", "What causes gout?", "--preset", "patient").out
    assert said("workflow.skipped", names="leaflets, encyclopaedias") in " ".join(patient.split())
    assert said("workflow.skipped", names="leaflets, nowhere") in " ".join(ran.out.split())
    chinese = own.ok("ask", CHINESE, "--preset", "mine").out
    assert "已检索：无" in chinese
    assert said("workflow.skipped", "zh", names="leaflets、nowhere") in chinese
    assert phrase("workflow.no_tier", "zh") in chinese


def test_only_the_collections_given(tiered: Localmed) -> None:
    answer = answer_of(tiered, QUESTION, "--preset", "ebm", "-c", "papers")
    assert (answer["searched"], shown(answer)) == (["papers"], {"papers"})
    both = answer_of(tiered, QUESTION, "-c", "papers", "-c", "guidelines")
    assert (sorted(both["searched"]), shown(both)) == (["guidelines", "papers"], {"guidelines", "papers"})
    empty = answer_of(tiered, QUESTION, "-c", "leaflets")
    assert (empty["status"], empty["searched"]) == ("abstained", [])


def test_a_preset_of_the_settings_is_the_default_and_an_unknown_one_is_refused(own: Localmed) -> None:
    for options in ((), ("--json",)):
        error = own("ask", QUESTION, "--preset", "emb", *options).failed(2)
        assert "ebm" in error
        assert "paracetamol" not in error
    (own.data / "localmed.toml").write_text('[ask]\npreset = "mine"\n[tiers.presets]\nmine = [["papers"]]\n')
    answer = answer_of(own, QUESTION)
    assert (answer["searched"], shown(answer)) == (["papers"], {"papers"})
    assert "guidelines" in answer_of(own, QUESTION, "--preset", "")["searched"]
    (own.data / "localmed.toml").write_text('[tiers.presets]\nebm = ["guideline"]\n')
    assert "tiers.presets.ebm" in own("ask", QUESTION).failed(2)
