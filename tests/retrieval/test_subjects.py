"""What a question names that a section must name too."""

from __future__ import annotations

from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain.findings import Closeness, Question
from localmed.library.library import Library
from localmed.retrieval.question import read as as_read
from localmed.retrieval.subjects import absent, closeness, subjects
from localmed.site import changes
from localmed.site.session import Session, local_caller
from localmed.site.site import Site
from tests.fakes import described, import_into, write

TEXTS = {
    "formulary.md": "# Formulary\n\nApixaban 5 mg twice a day in stroke. Saline. 病情安定后复查。\n",
    "secret.md": "# Trial\n\nWarfarin.\n",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("subjects")
    settings = Settings(folder / "data")
    for name, text in TEXTS.items():
        import_into(settings, write(folder / name.partition(".")[0], {name: text}), manifest=described(name[:-3]))
    return settings.data


@pytest.mark.parametrize(
    ("typed", "lacking"),
    [
        ("Eliquis dose", ()),  # held as apixaban
        ("艾乐妥的剂量", ()),
        ("azithromycin or apixaban", ("azithromycin",)),
        ("warfarin", ("warfarin",)),  # its collection is hidden
        ("阿奇霉素的剂量", ("阿奇霉素",)),
        ("安定注射多少", ("安定",)),  # a brand, elsewhere everyday Chinese
        ("ACE inhibitor in stroke", ()),  # a class
        ("potassium of 6.5", ()),  # what is measured
        ("allergic to codeine", ()),
        ("青霉素钠过敏", ()),
        ("methicillin-resistant bacteria", ()),
        ("treatment of Erdheim-Chester disease", ("Erdheim-Chester",)),
        ("penicillamine monitoring", ("penicillamine",)),
        ("Grandmother tripped yesterday", ()),
        ("Mrs Okafor needs apixaban", ()),
    ],
)
def test_what_no_document_that_may_be_read_has(data: Path, typed: str, lacking: tuple[str, ...]) -> None:
    read = Question(typed)
    with Library.open(data, frozenset({"secret"})) as library:
        assert absent(read, subjects(read), library) == lacking


def test_a_word_that_only_a_withdrawn_document_has_is_lacking(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "data")
    write(tmp_path / "docs", {"old.md": "# Zelvanine\n\nZelvanine 5 mg.\n", "new.md": "# Rubs\n\nHand rub.\n"})
    import_into(settings, tmp_path / "docs")
    read = Question("zelvanine dose")
    with Library.open(settings.data) as library:
        assert absent(read, (), library) == ()
        (old,) = [one for one in library.catalogue.documents() if one.title == "Zelvanine"]
    with Site(settings) as site:
        changes.withdraw(Session(site, local_caller(settings)), old, True, "recalled")
    with Library.open(settings.data) as library:
        assert absent(read, (), library) == ("zelvanine",)


@pytest.mark.parametrize(
    ("typed", "lacking", "said"),
    [
        ("apixaban", (), Closeness.CLOSE),
        ("azithromycin dose", ("azithromycin",), Closeness.NOTHING_NEAR),
        ("azithromycin in pneumonia", ("azithromycin",), Closeness.SOME_WAY),
        ("azithromycin with apixaban", ("azithromycin",), Closeness.SOME_WAY),
    ],
)
def test_what_the_library_lacks_is_never_close(typed: str, lacking: tuple[str, ...], said: Closeness) -> None:
    read = Question(typed)
    assert closeness(Closeness.CLOSE, read, lacking, subjects(read)) is said


@pytest.mark.parametrize("typed", ["a child of three", "孕妇", "paediatric", "婴儿", "while breastfeeding"])
def test_a_population_is_a_subject_in_both_languages(typed: str) -> None:
    (one,) = subjects(Question(typed))
    assert one.is_in("children, babies, pregnancy, lactation")
    assert one.is_in("儿童、新生儿、妊娠、哺乳")
    assert not one.is_in("adults 成人")


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("inr 8.5 no bleeding", ()),  # warfarin only stands in what it is written out with
        ("clexane 40 mg", ("enoxaparin",)),
        ("nac protocol", ("acetylcysteine",)),
        ("pre-eclampsia magnesium dose", ("pre-eclampsia",)),
        ("pph", ("pph",)),
        ("妊娠期糖尿病", ("妊娠期糖尿病",)),
        ("pregnant with pre-eclampsia", ("pregnant",)),
        ("neonatal jaundice", ("neonatal",)),
        ("opioid overdose", ("overdose",)),
        ("一氧化碳中毒", ("一氧化碳中毒",)),
        ("food poisoning", ()),
        ("poison ivy rash", ()),
        ("Child-Pugh B dosing", ()),
        ("UTI in a woman who is not pregnant", ()),
        ("antibiotics not safe in pregnancy", ("pregnancy",)),
        ("中毒性休克综合征", ()),
        ("非孕期", ()),
        ("Gravida 3 para 2", ()),
        ("which insulin pen", ("insulin",)),
        ("low dose", ()),
        ("3y 14kg fever", ("child",)),
        ("fever, 14 kg", ("child",)),
        ("AF 3y, which dose", ()),
        ("3y ago", ()),
        ("82 year old, 25 kg", ()),
        ("paracetamol OD", ("paracetamol", "overdose")),
    ],
)
def test_a_subject_is_what_was_typed_by_the_name_that_it_is_read_as(typed: str, named: tuple[str, ...]) -> None:
    assert tuple(one.written for one in subjects(as_read(typed))) == named


def test_a_section_on_pregnancy_is_about_a_condition_of_pregnancy() -> None:
    (one,) = subjects(Question("pre-eclampsia"))
    assert one.is_in("in pregnancy")
    assert one.is_in("eclampsia")
    assert not one.is_in("adults with hypertension")
