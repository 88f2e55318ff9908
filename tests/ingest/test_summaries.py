from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from localmed.config import ChunkSettings, Settings
from localmed.domain import Collection, Kind, Passage
from localmed.ingest import summaries
from localmed.ingest.manifest import Manifest
from localmed.ingest.summaries import CHARACTERS, OUTLINE, READ, SENTENCES, by_words, candidates, choose, outline
from localmed.library.library import Library, build
from localmed.library.summaries import Summary
from localmed.operations import changes, lookups
from tests.fakes import HashedWords, import_into, jsonl, opened, verify, write
from tests.values import passage

GUIDE = Manifest(Collection("ward", "Ward", kind=Kind.GUIDELINE))
SEPSIS = "# Sepsis\n\n## Antibiotics\n\nGive antibiotics within one hour of sepsis. Repeat antibiotics after a day.\n"
ASTHMA = "# Asthma\n\n## Attack\n\nAsthma is treated with salbutamol. Inhale salbutamol in every attack of asthma.\n"
CHINESE = "# 高血压\n\n## 治疗\n\n高血压患者应减少钠盐摄入。高血压患者应规律运动。\n"


def stored(settings: Settings) -> dict[str, Summary]:
    """The summaries served, by title; each one's places hold sentences of its text."""
    with Library.open(settings.data) as library:
        summaries = {}
        for document in library.catalogue.documents():
            if summary := library.catalogue.summaries.of(document.id):
                summaries[document.title] = summary
                passages = {passage.id: passage for passage in library.lexical.of_document(document.id)}
                for place in summary.places:
                    assert passages[place.passage].text[place.start : place.end] in summary.text.split("\n")
        return summaries


def test_a_guideline_is_summarised_by_its_own_sentences(settings: Settings, corpus: Path) -> None:
    import_into(settings, write(corpus, {"sepsis.md": SEPSIS, "zh.md": CHINESE}), manifest=GUIDE)
    summaries = stored(settings)
    assert summaries["Sepsis"].text.split("\n")[:2] == ["Sepsis", "Antibiotics"]
    assert "Give antibiotics within one hour of sepsis." in summaries["Sepsis"].text
    assert "高血压患者应减少钠盐摄入。" in summaries["高血压"].text
    assert all(summary.places for summary in summaries.values())
    verify(settings.data)


def test_only_guidelines_are(settings: Settings, corpus: Path, encoder: HashedWords) -> None:
    import_into(settings, write(corpus, {"sepsis.md": SEPSIS}), encoder=encoder)
    assert stored(settings) == {}
    assert len(encoder.encoded) == 3  # its passage and two sentences


def test_chinese_is_not_encoded_for_its_summary(settings: Settings, corpus: Path, encoder: HashedWords) -> None:
    import_into(settings, write(corpus, {"zh.md": CHINESE}), manifest=GUIDE, encoder=encoder)
    assert len(encoder.encoded) == 1
    with Library.open(settings.data) as library:
        assert library.guidelines.vectors.shape == (1, 0)


def test_only_what_changed_is_made_again(settings: Settings, corpus: Path) -> None:
    records = [{"title": name, "text": f"{name} is treated on the ward. Call a doctor."} for name in ("One", "Two")]
    import_into(settings, write(corpus, {"a.jsonl": jsonl(*records), "b.md": SEPSIS}), manifest=GUIDE)
    before = stored(settings)
    again = HashedWords()
    import_into(settings, corpus, manifest=GUIDE, encoder=again)
    assert again.encoded == []
    records[1]["text"] = "Two is treated at home. Nobody is called."
    write(corpus, {"a.jsonl": jsonl(*records)})
    import_into(settings, corpus, manifest=GUIDE, encoder=again)
    assert not [text for text in again.encoded if "One" in text or "Sepsis" in text]
    after = stored(settings)
    assert {name for name in after if after[name] != before[name]} == {"Two"}
    assert "at home" in after["Two"].text


def test_unchanged_summaries_are_not_even_extracted(settings: Settings, corpus: Path, encoder: HashedWords) -> None:
    import_into(settings, write(corpus, {"a.md": SEPSIS, "b.md": ASTHMA}), manifest=GUIDE)
    with build(settings.data, encoder.identity, settings.library) as builder:
        assert summaries.complete(builder, encoder, settings) == 0
        assert not builder.changed
    other = replace(settings, chunk=ChunkSettings(characters=500))
    with build(settings.data, encoder.identity, settings.library) as builder:
        assert summaries.complete(builder, encoder, other) == 2


def test_another_title_or_way_of_cutting_makes_it_again(settings: Settings, corpus: Path) -> None:
    import_into(settings, write(corpus, {"a.md": SEPSIS}), manifest=GUIDE)
    titled = replace(GUIDE, documents={"a.md": {"title": "Blood poisoning"}})
    import_into(settings, corpus, manifest=titled)
    assert set(stored(settings)) == {"Blood poisoning"}
    before = stored(settings)["Blood poisoning"]
    smaller = replace(settings, chunk=ChunkSettings(characters=100))
    import_into(smaller, corpus, manifest=titled)
    assert stored(smaller)["Blood poisoning"].recipe != before.recipe


def test_a_summary_goes_with_its_document(settings: Settings, corpus: Path) -> None:
    import_into(settings, write(corpus, {"a.md": SEPSIS, "b.md": ASTHMA}), manifest=GUIDE)
    (corpus / "a.md").unlink()
    import_into(settings, corpus, manifest=GUIDE)
    assert set(stored(settings)) == {"Asthma"}
    with opened(settings, HashedWords()) as session:
        changes.remove(session, lookups.documents(session, "ward"))
    assert stored(settings) == {}


def test_a_collection_may_become_one_of_guidelines_and_cease_to_be(settings: Settings, corpus: Path) -> None:
    import_into(settings, write(corpus, {"a.md": SEPSIS}))
    with opened(settings, HashedWords()) as session:
        changes.put_collection(session, GUIDE.collection)
        assert set(stored(settings)) == {"Sepsis"}
        changes.put_collection(session, replace(GUIDE.collection, kind=Kind.BOOK))
        assert stored(settings) == {}
    import_into(settings, corpus, manifest=GUIDE)  # its files are unchanged, its manifest is not
    assert set(stored(settings)) == {"Sepsis"}


class Interrupted(HashedWords):
    """An encoder that is stopped while it encodes a summary."""

    def encode(self, texts, kind):  # type: ignore[no-untyped-def]
        if any(text.startswith("Asthma\nAttack") for text in texts):
            raise KeyboardInterrupt
        return super().encode(texts, kind)


def test_an_interrupted_build_serves_nothing_of_it(settings: Settings, corpus: Path) -> None:
    import_into(settings, write(corpus, {"a.md": SEPSIS}), manifest=GUIDE)
    write(corpus, {"b.md": ASTHMA})
    with pytest.raises(KeyboardInterrupt):
        import_into(settings, corpus, manifest=GUIDE, encoder=Interrupted())
    assert set(stored(settings)) == {"Sepsis"}
    verify(settings.data)
    resumed = HashedWords()
    import_into(settings, corpus, manifest=GUIDE, encoder=resumed)
    assert len(resumed.encoded) == 1  # the summary; what was encoded before is remembered
    assert set(stored(settings)) == {"Asthma", "Sepsis"}


# --- extraction -------------------------------------------------------------------------------------------------------


def extracted(*passages: Passage) -> list[str]:
    read = candidates(passages)
    return [sentence.text for sentence in choose(read, by_words(passages, read))]


def test_the_most_repeated_matter_is_chosen_and_nothing_twice() -> None:
    same = "Salbutamol is inhaled in an attack of asthma."
    texts = [same, same, "Inhaled salbutamol relieves asthma.", "The cafeteria opens at noon today."]
    chosen = extracted(*(passage(text, title=str(number)) for number, text in enumerate(texts)))
    assert chosen[0] == same
    read = candidates([passage(text, title=str(number)) for number, text in enumerate(texts)])
    first_two = choose(read, np.eye(4, dtype=np.float32)[[0, 0, 1, 2]])
    assert len(first_two) == 4  # a short document is taken whole, in its order
    assert [sentence.text for sentence in first_two] == texts


def test_a_long_document_is_bounded() -> None:
    long = [
        passage(" ".join(f"Sentence {row} of part {number} tells of asthma." for row in range(9)), title=str(number))
        for number in range(3 * READ)
    ]
    read = candidates(long)
    assert len(read) == READ
    assert len({sentence.place.passage for sentence in read}) == READ  # all over the document
    chosen = extracted(*long)
    assert len(chosen) <= SENTENCES
    assert 0 < sum(map(len, chosen)) <= CHARACTERS
    assert len(
        outline("Title", [replace(passage, headings=("A heading" * number,)) for number, passage in enumerate(long)])
    )
    assert (
        len(outline("Title", [replace(passage, headings=(f"Heading {passage.title}",)) for passage in long])) <= OUTLINE
    )


def test_one_sentence_longer_than_the_bound_is_taken_whole() -> None:
    text = "asthma, " * 400
    assert extracted(passage(text)) == [text.strip()]


@pytest.mark.parametrize("text", ["Rest.", "no full stop", "x"])
def test_a_document_of_one_fragment_is_its_own_summary(text: str) -> None:
    assert extracted(passage(text)) == [text]


@pytest.mark.parametrize("text", ["", " \n ", "\n"])
def test_nothing_is_made_of_nothing(text: str) -> None:
    assert extracted(passage(text)) == []
    assert extracted() == []


def test_tables_are_read_only_where_there_is_nothing_else() -> None:
    table = replace(passage("Drug: adrenaline; Dose: 0.5 mg\nDrug: glucagon; Dose: 1 mg", title="T"), table=True)
    prose = passage("Adrenaline is given into the thigh.")
    assert extracted(table, prose) == [prose.text]
    assert extracted(table) == table.text.split("\n")


def test_chinese_sentences_are_told_apart() -> None:
    zh = passage("高血压患者应减少钠盐摄入。建议每周运动五次以上。", language="zh")
    assert extracted(zh) == ["高血压患者应减少钠盐摄入。", "建议每周运动五次以上。"]


def test_words_of_stop_words_only_do_no_harm() -> None:
    assert extracted(passage("It is what it is and was.")) == ["It is what it is and was."]


def test_the_outline_has_each_heading_once_upper_levels_first() -> None:
    paths = [("Asthma", "Attack"), ("Asthma", "Attack", "Doses"), ("Prevention",)]
    parts = [replace(passage("x", title="Asthma"), headings=path) for path in paths]
    assert outline("Asthma", parts) == "Prevention; Attack; Doses"
