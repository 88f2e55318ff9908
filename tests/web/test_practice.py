"""Evidence for one patient, orders with their leaflet, departments; what a record holds stands nowhere else."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from localmed.domain import Answer, AnswerStatus, Message, Origin, Statement, message, number_to_call
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.parts import DepartmentPart, LinePart, TermPart
from localmed.people import history
from localmed.presentation.answer import view
from localmed.presentation.order import line as order_line
from localmed.presentation.order import terms_by_line, with_cited_sources
from localmed.presentation.views import CitationView, PartView, SourceView, StatementView
from localmed.site.audit import Audit
from localmed.site.session import Session, caller_of
from localmed.workflows.departments import always_told
from tests.values import PROVENANCE
from tests.web.conftest import Client, Clients
from tests.words import phrase, said, words

RECORD = "Name: Zoltan Kowalczyk\n67-year-old man. Allergies: penicillin\nMedications: warfarin 5 mg daily\n"
QUESTION = "What is the maximum dose of paracetamol in adults?"
ORDER = "Paracetamol 1 g p.o. q6h prn\n"


def ask(client: Client, record: str = RECORD, **files: bytes) -> str:
    values = {"form": client.token(), "question": QUESTION, "record": record}
    sent = {name: ("record.txt", data, "text/plain") for name, data in files.items()}
    reply = client.http.post("/practice", data=values, files=sent or {"file": ("", b"")})
    assert reply.status_code == 200, reply.text
    assert reply.url.path.startswith("/answers/")
    return reply.text


def test_a_record_is_asked_for_only_where_one_is_wanted(client: Clients) -> None:
    reader = client("reader")
    answer = reader.form("/practice", question=QUESTION)
    assert answer.url.path.startswith("/answers/"), "no record: answered at once"
    assert "/answers/" in reader.form("/practice", question=QUESTION, record=RECORD, pico="true").url.path, "so is one"
    assert re.search(
        r"<details><summary>[^<]*</summary>\s*<p[^>]*>\s*<label for=\"record\"", reader.get("/practice").text
    )


def test_the_record_stands_in_the_answer_with_its_names_to_search_for(client: Clients) -> None:
    answer = ask(client("reader"), RECORD + "Paracetamol 1 g prn, INR 2.4")
    assert "Kowalczyk" not in answer
    assert re.search(r'<button name="question" value="penicillin" class="warns">penicillin</button>', answer)
    assert re.search(r'<button name="question" value="Paracetamol">Paracetamol</button>', answer)
    assert said("ebm.absent", names=("warfarin",)) in answer
    assert 'value="INR 2.4"' not in answer, "a value is searched for by its name"


def test_question_and_record_can_be_changed_without_being_pasted_again(client: Clients) -> None:
    reader = client("reader")
    answer = ask(reader)
    (again,) = re.findall(r'href="(/practice\?again=[^"]+)"', answer)
    back = reader.get(again).text
    assert "warfarin 5 mg daily" in back
    assert QUESTION in back
    assert "Kowalczyk" not in back
    other = client("librarian").get(again)
    assert other.status_code == 404, "by nobody else"


def test_a_file_is_read_as_what_is_pasted_and_never_both(client: Clients) -> None:
    reader = client("reader")
    assert "penicillin" in ask(reader, "", file=RECORD.encode())
    values = {"form": reader.token(), "question": QUESTION, "record": RECORD}
    reply = reader.http.post("/practice", data=values, files={"file": ("record.txt", b"62-year-old woman")})
    assert reply.status_code == 400


@pytest.mark.slow
def test_a_record_is_kept_nowhere_in_the_clear_nor_in_a_temporary_file(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    long_record = RECORD + "Walked well today. " * 60_000  # above a megabyte
    values = {"form": reader.token(), "question": QUESTION}
    reader.http.post("/practice", data=values, files={"file": ("r.txt", long_record.encode())})
    ask(reader)
    reader.form("/orders", order=f"{ORDER}Warfarin 5 mg daily")
    for file in copied_clients.settings.data.rglob("*"):
        if file.is_file() and file.name.startswith(("state", "audit")):
            content = file.read_bytes().lower()
            assert b"penicillin" not in content, file.name
            assert b"warfarin" not in content, file.name


def test_an_uploaded_record_stays_in_memory(client: Clients, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))  # whoever makes a temporary file fails
    reader = client("reader")
    text = "67-year-old man. " + "x" * 10 + " Walked well today. " * 9_000
    values = {"form": reader.token(), "question": QUESTION}
    padded = text.encode() + b" " * 1_200_000
    reply = reader.http.post("/practice", data=values, files={"file": ("r.txt", padded)})
    assert reply.status_code in (200, 413), reply.text


def test_an_order_is_explained_and_its_leaflet_released_by_name(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    page = reader.form("/orders", order=ORDER)
    assert "Paracetamol 1 g p.o. q6h prn" in page.text
    assert "--released-by" not in page.text, "no option of the command line"
    path = f"{page.url.path}/leaflet"
    assert reader.form(path, released_by="  ").status_code == 400
    assert reader.form(path, released_by="Ward nurse Ada", language="fr").status_code == 400
    leaflet = reader.form(path, released_by="Ward nurse Ada", language="both")
    assert leaflet.status_code == 200
    assert leaflet.text.count("<article") == 2
    assert 'lang="zh"' in leaflet.text
    english, chinese = leaflet.text.split("<article")[1:]
    assert "only when needed" in english
    assert "必要时" in chinese, "what an abbreviation means is told in the reader's language"
    assert "only when needed" not in chinese
    assert "Released by Ward nurse Ada" in leaflet.text
    assert 'data-user="reader"' in leaflet.text, "cleared when the reader signs out"
    assert "data-print" in leaflet.text
    assert "http-equiv" not in leaflet.text, "the policy of the reply is that of every page"
    today = date.today().isoformat()
    page = reader.get(page.url.path)
    released = message("explain.released", name="Ward nurse Ada", date=today)
    for shown in (page, reader.get(f"{page.url.path}/sheet")):
        assert f"<strong>{said('explain.for_staff', released=released)}</strong>" in shown.text, "on paper too"
    assert said("explain.not_released") not in page.text
    assert said("answer.purpose.explain") not in page.text
    assert reader.get(path, params={"language": "zh"}).text.count("<article") == 1
    with Audit(copied_clients.settings.data) as log:
        entry = log.entries()[-1]
    assert (entry.actor, entry.action, entry.outcome) == ("reader", "release", "by Ward nurse Ada")
    assert copied_clients("admin").form(path, released_by="Somebody").status_code == 404


def test_an_order_that_is_not_released_has_no_leaflet_and_comes_back_to_be_edited(client: Clients) -> None:
    reader = client("reader")
    asked = "When <do> I take it?"
    page = reader.form("/orders", order="Metformin 500 mg\nINR daily", questions=asked)
    assert "Smith" not in reader.form("/orders", order="Mrs J. A. Smith\nMetformin 500 mg").text, "nor to be edited"
    assert reader.get(f"{page.url.path}/leaflet").url.path == page.url.path
    address = html.unescape(re.search(r'href="(/orders\?[^"]+)"', page.text)[1])  # type: ignore[index]
    form = html.unescape(reader.get(address).text)
    assert ">Metformin 500 mg\nINR daily</textarea>" in form
    assert f">{asked}</textarea>" in form
    assert client("admin").get(address).status_code == 404, "somebody else's order"


def test_the_message_for_somebody_in_danger_is_no_leaflet_and_the_questions_come_back_too(client: Clients) -> None:
    reader = client("reader")
    asked = "I am Mrs J. A. Smith. I want to die\nfamily name: Okonkwo, can he eat?"
    page = reader.form("/orders", order="Metformin 500 mg", questions=asked)
    assert "released_by" not in page.text
    assert reader.form(f"{page.url.path}/leaflet", released_by="Ada").status_code == 400
    form = html.unescape(reader.get(f"/orders?again={page.url.path.rpartition('/')[2]}").text)
    assert ">Metformin 500 mg</textarea>" in form
    assert "I want to die\n" in form
    assert not [name for name in ("Smith", "Okonkwo") if name in form]


@pytest.mark.parametrize(
    "order", ["Paracetamol 1 g PO, enoxaparin 40 mg SC", "对乙酰氨基酚0.5g 口服，依诺肝素40mg 皮下"]
)
def test_a_line_of_two_medicines_is_looked_at_before_it_is_released(client: Clients, order: str) -> None:
    reader = client("reader")
    page = reader.form("/orders", order=order)
    assert 'name="checked" value="true" required' in page.text
    path = f"{page.url.path}/leaflet"
    assert reader.form(path, released_by="Ada").status_code == 400
    assert "<article" in reader.form(path, released_by="Ada", checked="true").text
    assert 'name="checked"' not in reader.form("/orders", order="Paracetamol 1 g\nEnoxaparin 40 mg").text


def test_beside_each_line_of_an_order_stands_what_it_means(client: Clients) -> None:
    reader = client("reader")
    values = {"form": reader.token(), "order": ""}
    file = {"file": ("order.txt", b"Paracetamol 1 g q6h\nNPO after midnight\n", "text/plain")}
    page = reader.http.post("/orders", data=values, files=file).text
    rows = re.findall(r'<th scope="row">([^<]+)</th><td>(.*?)</td>', page, re.DOTALL)
    assert [line for line, _ in rows] == ["Paracetamol 1 g q6h", "NPO after midnight"]
    assert "<strong>q6h</strong>" in rows[0][1]
    assert "<strong>NPO</strong>" in rows[1][1]
    assert page.count("Paracetamol 1 g q6h") == 3, (
        "in the table, and in the text to copy as the order and as a line of it"
    )
    assert reader.http.post("/orders", data={**values, "order": "NPO"}, files=file).status_code == 400


def test_a_term_stands_beside_the_line_that_it_is_in() -> None:
    lines_of_order = (LinePart("NPO", start=0, end=3), LinePart("Metformin", start=4, end=13))
    parts = (*lines_of_order, TermPart("Metformin", start=4, end=13))
    shown = [PartView(name) for name in ("first", "second", "term")]
    lines, rest = terms_by_line(parts, shown, "zh")
    assert [(line.title, [one.text for one in line.rows], [one.title for one in terms]) for line, terms in lines] == [
        ("first", [], []),
        ("second", [], ["term"]),
    ]
    assert rest == []


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("STOP ibuprofen", True),
        ("停用布洛芬。", True),
        ("Stop warfarin five days before the operation", False),
        ("STOP metformin if vomiting", False),
        ("Stop smoking", False),
        ("STOP: warfarin; digoxin", False),
    ],
)
def test_only_a_line_that_is_a_stop_and_a_medicine_says_that_it_is_stopped(written: str, told: bool) -> None:
    shown = order_line(LinePart(written), "en")
    assert (said("explain.stop") in [row.text for row in shown.rows]) is told


def test_an_orders_page_lists_only_the_sources_that_it_cites() -> None:
    def cited(marker: str) -> PartView:
        return PartView("x", statements=(StatementView("x", (CitationView(marker, "p", 0, 1, "x"),)),))

    sources = tuple(SourceView(marker, "x", (), (), "p", "x") for marker in "123")
    shown = replace(view(Answer(AnswerStatus.ANSWERED, "x", "en", (), (), (), PROVENANCE)), sources=sources)
    read = with_cited_sources(shown, [(PartView("line"), [cited("1")])], [cited("3")])
    assert [one.marker for one in read.sources] == ["1", "3"]
    assert with_cited_sources(shown, [], []) == shown, "of no order"


def test_beside_a_line_a_term_stands_once_in_the_readers_language() -> None:
    line = LinePart("Metformin", start=0, end=9)
    told = {"en": "A tablet for diabetes.", "zh": "治疗糖尿病的药。"}
    terms = [TermPart("Metformin", (Statement(text, (), Origin.EXTRACTIVE),), start=0, end=9) for text in told.values()]
    shown = [PartView(name) for name in ("line", *told)]
    for language in told:
        ((_, beside),), _ = terms_by_line((line, *terms), shown, language)
        assert [one.title for one in beside] == [language]
    for own, told_alone in (("zh", ["zh"]), ("en", [])):
        ((_, alone),), _ = terms_by_line((line, terms[1]), [shown[0], shown[2]], "en", own)
        assert [one.title for one in alone] == told_alone, "else in the order's language, and in no other"


@pytest.mark.slow
def test_an_emergency_in_a_patients_question_is_told_to_staff_and_on_the_leaflet(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    page = reader.form(
        "/orders", order="Paracetamol 1 g once a day\n", questions="I have crushing chest pain. How many can I take?"
    )
    told = said("finding.flagged", signs=(message("departments.flag.chest_pain"),), number=number_to_call(""))
    assert told in page.text
    assert told in reader.form(f"{page.url.path}/leaflet", released_by="Ada", language="en").text
    plain = reader.form("/orders", order="Paracetamol 1 g once a day\n", questions="When do I take it?")
    assert phrase("finding.flagged") not in plain.text


def test_the_answer_of_who_releases_it_stands_on_the_leaflet(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    page = reader.form("/orders", order="Paracetamol 1 g once a day\n", questions="When do I take it?")
    assert page.text.count('name="reply"') == 1
    assert '<option value="en" selected>' in page.text, "the order's own language"
    path = f"{page.url.path}/leaflet"
    assert reader.form(path, released_by="Ada", reply="In the\nmorning", section="0:99").status_code == 400
    leaflet = reader.form(path, released_by="Ada", reply="In the\nmorning", language="en").text
    assert "In the morning" in leaflet
    assert phrase("explain.no_answer") not in leaflet


def test_only_an_order_has_a_leaflet(client: Clients) -> None:
    reader = client("reader")
    path = reader.form("/ask", question=QUESTION).url.path
    assert reader.form(f"{path}/leaflet", released_by="Ada").status_code == 400


def test_departments(client: Clients) -> None:
    page = client("reader").form("/departments", question="My chest hurts and I cannot breathe")
    assert page.status_code == 200
    warned, _, rest = page.text.partition("data-focus")
    assert 'class="notice warning"' in warned
    always = said("departments.always", number=number_to_call(""))
    assert always in warned
    assert always not in rest.partition("<textarea")[0], "told once, before everything else"
    again = client("reader").get(page.url.path).text
    assert 'action="/departments"' in again.partition("data-focus")[0], "the box for the next complaint"


@pytest.mark.parametrize(("note", "red"), [(message("departments.likened"), False), (always_told("120"), True)])
def test_only_a_known_sign_is_told_in_the_red_box(client: Clients, note: Message, red: bool) -> None:
    reader = client("reader")
    session = Session(client.site, caller_of(Account("reader", SessionRole.READER), "en"))
    part = DepartmentPart("Emergency Department", (), "Ground floor", (message("departments.flag.stroke"),))
    ended = Answer(AnswerStatus.ANSWERED, "x", "en", (), (), (), PROVENANCE)
    answer = replace(ended, notes=(note,), parts=(part,), workflow="departments")
    page = reader.get(f"/answers/{history.keep(session, '', 'x', answer).id}").text
    assert f'<div class="notice{" warning" if red else ""}"><p><strong>{words(note)}' in page


def test_beside_a_stop_a_known_sign_still_counts(copied_clients: Clients) -> None:
    path = copied_clients("reader").form("/departments", question="My chest hurts and I cannot breathe").url.path
    copied_clients("safety").form("/safety/stop", what="workflow departments", reason="the guide is old")
    page = copied_clients("reader").get(path).text
    assert said("web.answer.stopped_departments", reason="the guide is old") in page


def test_a_safety_message_for_a_complaint_has_no_empty_heading(client: Clients) -> None:
    page = client("reader").form("/departments", question="I want to die")
    assert re.search(r'<div class="notice warning"[^>]*>\s*<p>', page.text), "seen as an emergency is"
    assert page.status_code == 200
    assert not re.search(r"<h2[^>]*data-focus", page.text)
    assert "data-focus" in page.text


def test_an_abbreviation_with_two_meanings_reaches_no_patient(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    page = reader.form("/orders", order="Latanoprost OD, check BM\n")
    choices = re.findall(r'<select id="meaning-\d" name="meaning" required>(.*?)</select>', page.text)
    assert [re.findall(r"<option value=\"(\d*)\">", options)[:2] for options in choices] == [["", "0"]] * 2, "OD, BM"
    path = f"{page.url.path}/leaflet"
    for chosen in ([], ["0"], ["0", ""]):
        refused = reader.form(path, released_by="Ward nurse Ada", meaning=chosen)
        assert refused.status_code == 400
        assert "BM" in refused.text
        assert "<article" not in refused.text
    assert reader.form(path, released_by="Ward nurse Ada", meaning=["0", "9"]).status_code == 400
    for language, meant, other in (("en", "once a day", "the right eye"), ("zh", "每日一次", "右眼")):
        page = reader.form(path, released_by="Ward nurse Ada", meaning=["0", "0"], language=language)
        assert page.status_code == 200
        assert meant in page.text
        assert other not in page.text
    page = reader.form("/orders", order="Prednisolone 30 mg PO once a day\n")
    assert reader.form(f"{page.url.path}/leaflet", released_by="Ward nurse Ada").status_code == 200


def test_an_abbreviation_that_a_line_writes_twice_is_not_chosen_once(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    page = reader.form("/orders", order="Chloramphenicol 0.5% eye drops OD OD\n")
    assert 'name="meaning"' not in page.text
    refused = reader.form(f"{page.url.path}/leaflet", released_by="Ada", meaning=["0"])
    assert (refused.status_code, phrase("explain.ambiguous") in refused.text) == (400, True)
