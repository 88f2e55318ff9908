"""Asking in tiers: presets, priorities, what is missing, and possible conflicts, in both languages."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from localmed.cli.common import width_of
from tests.cli.conftest import Localmed, notes_of

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


def cited(answer: Any) -> set[str]:
    """The collections that an answer's sentences rest on."""
    markers = {citation["marker"] for statement in answer["statements"] for citation in statement["citations"]}
    return {evidence["passage"]["collection"] for evidence in answer["evidence"] if evidence["marker"] in markers}


def test_without_a_preset_the_priorities_decide(tiered: Localmed) -> None:
    answer = answer_of(tiered, QUESTION)
    assert answer["searched"] == ["guidelines"]
    assert cited(answer) == {"guidelines"}
    assert answer["conflicts"] == []
    later = answer_of(tiered, "What causes gout?")
    assert later["searched"] == ["guidelines", "papers", "books"]
    assert cited(later) == {"books"}


def test_ebm_looks_one_tier_further(tiered: Localmed) -> None:
    answer = answer_of(tiered, QUESTION, "--preset", "ebm")
    assert answer["searched"] == ["guidelines", "papers"]
    assert cited(answer) == {"guidelines"}
    dose, edition = answer["conflicts"]
    by_marker = {evidence["marker"]: evidence["passage"]["collection"] for evidence in answer["evidence"]}
    assert by_marker[dose["marker"]] == by_marker[edition["marker"]] == "guidelines"
    assert by_marker[dose["against"]] == by_marker[edition["against"]] == "papers"
    assert (dose["kind"], edition["kind"]) == ("dose", "edition")
    assert [amount["high"] for amount in dose["amounts"]] == [4000, 3000]
    assert [(amount["written"], amount["unit"]) for amount in dose["amounts"]] == [("4 g", "mg"), ("3 g", "mg")]
    assert edition["editions"] == ["2021-03", "2024-05"]
    assert "4 g a day" in dose["ours"]["quote"]
    theirs = dose["theirs"]
    assert "should be 3 g a day" in theirs["quote"]
    assert theirs["marker"] == dose["against"]
    (text,) = [evidence["passage"]["text"] for evidence in answer["evidence"] if evidence["marker"] == dose["against"]]
    assert text[theirs["start"] : theirs["end"]] == theirs["quote"]
    assert {"page", "boxes"} <= theirs.keys()


def test_a_conflict_is_printed_with_both_sources(tiered: Localmed) -> None:
    printed = tiered.ok("ask", QUESTION, "--preset", "ebm").out
    flat = " ".join(printed.split())
    assert re.search(r"! Possible conflict, another amount: source \d says 4 g, source \d says 3 g\.", flat)
    assert re.search(r"! Possible conflict, a newer edition: source \d is of 2024-05, source \d of 2021-03\.", flat)
    match = re.search(r"says 3 g\. The maximum dose of paracetamol in adults should be 3 g a day\. \[(\d)\]", flat)
    assert match, "what the other source says"
    assert re.search(rf"\[{match[1]}\] Paracetamol, edition 2024-05 \w{{12}} --span \d+-\d+ ", flat)
    assert flat.index("is 4 g a day") < flat.index("Possible conflict") < flat.index("Sources")
    assert "edition 2021-03" in flat
    assert "edition 2024-05" in flat
    assert all(width_of(line) <= 80 for line in printed.splitlines())


def test_the_same_in_chinese(tiered: Localmed) -> None:
    printed = tiered.ok("ask", CHINESE, "--preset", "ebm").out
    flat = re.sub(r"\s", "", printed)
    assert re.search(r"!可能存在冲突（数值不同）：来源\d为4克，来源\d为3克。", flat), printed
    assert "可能存在冲突（有更新的版本）" in flat
    assert re.search(r"来源\d为3克。成人对乙酰氨基酚的最大剂量应为每日3克。\[\d\]", flat), printed
    assert all(width_of(line) <= 80 for line in printed.splitlines())


def test_what_a_preset_lacks_is_told_and_nothing_else_is_searched(tiered: Localmed, own: Localmed) -> None:
    answer = answer_of(tiered, "What causes gout?", "--preset", "patient")
    assert answer["searched"] == ["books"]
    assert cited(answer) == {"books"}
    assert notes_of(answer) == ["Not searched, as the library holds nothing of it: leaflets, encyclopaedias"]
    (own.data / "localmed.toml").write_text('[tiers.presets]\nmine = [["leaflet"], ["nowhere"]]\n')
    ran = own.ok("ask", QUESTION, "--preset", "mine")
    assert ran.out.startswith("No answer")
    assert "Searched: nothing" in ran.out
    patient = own.ok("ask", "What causes gout?", "--preset", "patient").out
    assert "holds nothing of it: leaflets, encyclopaedias" in " ".join(patient.split())
    assert "holds nothing of it: leaflets, nowhere" in " ".join(ran.out.split())
    chinese = own.ok("ask", CHINESE, "--preset", "mine").out
    assert "已检索：无" in chinese
    assert "未检索（资料库中没有相应内容）：leaflets、nowhere" in chinese
    assert "指定检索的资料集均无内容" in chinese


def test_only_the_collections_given(tiered: Localmed) -> None:
    answer = answer_of(tiered, QUESTION, "--preset", "ebm", "-c", "papers")
    assert answer["searched"] == ["papers"]
    both = answer_of(tiered, QUESTION, "-c", "papers", "-c", "guidelines")
    assert both["searched"] == ["guidelines"], "still in tiers"
    empty = answer_of(tiered, QUESTION, "-c", "leaflets")
    assert (empty["status"], empty["searched"]) == ("abstained", [])


def test_an_unknown_preset(tiered: Localmed) -> None:
    error = tiered("ask", QUESTION, "--preset", "emb").failed(2)
    assert "ebm" in error
    assert "paracetamol" not in error
    tiered("ask", QUESTION, "--preset", "emb", "--json").failed(2)


def test_a_preset_of_the_settings_is_the_default_and_can_be_set_aside(own: Localmed) -> None:
    (own.data / "localmed.toml").write_text(
        '[ask]\npreset = "mine"\n[tiers]\nfurther = ["mine"]\n[tiers.presets]\nmine = [["papers"], ["guideline"]]\n'
    )
    answer = answer_of(own, QUESTION)
    assert answer["searched"] == ["papers", "guidelines"]
    assert cited(answer) == {"papers"}
    assert [conflict["kind"] for conflict in answer["conflicts"]] == ["dose"], "the guideline is older"
    assert answer_of(own, QUESTION, "--preset", "")["searched"] == ["guidelines"]
    (own.data / "localmed.toml").write_text('[tiers.presets]\nebm = ["guideline"]\n')
    assert "tiers.presets.ebm" in own("ask", QUESTION).failed(2)


def test_the_trace_shows_tiers_and_keywords(tiered: Localmed) -> None:
    ran = tiered.ok("ask", QUESTION, "--preset", "ebm", "--trace")
    assert re.search(r"ms  keywords: count \d, unknown \d", ran.err)
    assert re.search(r"ms  search: hits \d+, .*keywords \d:\d.*, collections guidelines", ran.err)
    assert re.search(r"ms  search: .*collections papers", ran.err)
    assert "paracetamol" not in ran.err.lower()


@pytest.mark.parametrize("question", ["of the and", "?!", "，。？", "x " * 9_000 + "y" * 2_000, "的" * 20_000])
def test_any_question_in_tiers(tiered: Localmed, question: str) -> None:
    answer = answer_of(tiered, question, "--preset", "ebm")
    assert answer["status"] == "abstained"
    assert answer["searched"] == ["guidelines", "papers", "books"]
