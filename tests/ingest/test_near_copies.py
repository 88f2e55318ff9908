"""A withdrawn document that comes back with a few words changed waits for the librarian."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import Message
from localmed.library.sketches import ALIKE, likeness, sketch
from localmed.site import changes, importing, lookups
from tests.fakes import HashedWords, answers, described, documents, import_into, opened, write

RECALLED = (
    "Anaphylaxis\n\nGive 500 micrograms of adrenaline into the muscle of the thigh, and repeat it after 5 minutes.\n"
)
CHINESE = "过敏性休克\n\n立即在大腿外侧肌内注射肾上腺素五百微克，五分钟后症状不缓解可重复注射一次。\n"
QUESTION = "adrenaline for anaphylaxis"


@pytest.fixture
def recalled(settings: Settings, corpus: Path) -> Settings:
    """A library of which a document is withdrawn and its file gone."""
    write(corpus, {"old.txt": RECALLED, "fever.txt": "Fever\n\nGive paracetamol against fever and plenty of water.\n"})
    import_into(settings, corpus)
    with opened(settings, HashedWords()) as session:
        changes.withdraw(session, documents(settings)["old.txt"], True, "recalled")
    (corpus / "old.txt").unlink()
    return settings


@pytest.mark.parametrize("collection", ["ward", "pharmacy"])
def test_a_copy_with_a_word_changed_is_held_whatever_its_name(
    recalled: Settings, corpus: Path, collection: str
) -> None:
    write(corpus, {"new.txt": RECALLED.replace("thigh", "leg")})
    report = import_into(recalled, corpus, manifest=described(collection))
    held = next(line for line in report.lines if line.path.endswith("new.txt"))
    assert held.outcome == "quarantined"
    assert isinstance(held.detail, Message)
    assert "withdrawn" in str(held.detail)
    assert "Anaphylaxis" not in answers(recalled, QUESTION)


@pytest.mark.slow
def test_it_is_taken_when_somebody_says_so_and_stays(recalled: Settings, corpus: Path) -> None:
    write(corpus, {"new.txt": RECALLED.replace("thigh", "leg")})
    import_into(recalled, corpus)
    with opened(recalled, HashedWords()) as session:
        importing.import_paths(session, [corpus], described(), near_copies=True)
        assert not lookups.quarantine(session, "")
    assert "Anaphylaxis" in answers(recalled, QUESTION)
    cut_otherwise = replace(recalled, chunk=replace(recalled.chunk, characters=500))
    report = import_into(cut_otherwise, corpus)
    assert report.counts["read"] == 2
    assert not report.counts["quarantined"]


def test_copies_that_are_there_already_are_named_and_a_reinstated_document_holds_none(
    settings: Settings, corpus: Path
) -> None:
    others = {"copy.txt": RECALLED.replace("thigh", "leg"), "fever.txt": "Fever\n\nGive paracetamol and water.\n"}
    import_into(settings, write(corpus, {"old.txt": RECALLED, **others}))
    withdrawn = documents(settings)["old.txt"]
    with opened(settings, HashedWords()) as session:
        changes.withdraw(session, withdrawn, True, "recalled")
        named = lookups.near_copies(session, withdrawn)
        changes.withdraw(session, withdrawn, False, "it was right")
    assert [document.key.rpartition("/")[2] for document in named] == ["copy.txt"]
    write(corpus, {"new.txt": RECALLED.replace("thigh", "arm")})
    assert not import_into(settings, corpus).counts["quarantined"]


def test_likeness_is_the_share_of_pairs_in_common() -> None:
    others = (RECALLED, RECALLED.replace("500", "300"), "Give paracetamol against fever and plenty of water.", "")
    shares = [likeness(sketch([RECALLED]), sketch([other])) for other in others]
    assert shares == pytest.approx([1.0, 0.8, 0.0, 0.0], abs=0.05)


def test_of_long_texts_and_of_chinese_it_is_estimated() -> None:
    words = [f"word{number}" for number in range(4_000)]
    changed = [*words[:2_000], *(f"other{number}" for number in range(1_000)), *words[3_000:]]
    assert likeness(sketch([" ".join(words)]), sketch([" ".join(changed)])) == pytest.approx(3_000 / 5_000, abs=0.12)
    near, other = sketch([CHINESE.replace("立即", "马上")]), sketch(["发热\n\n多喝水，注意休息，必要时退热。\n"])
    assert likeness(sketch([CHINESE]), near) >= ALIKE > likeness(sketch([CHINESE]), other)
