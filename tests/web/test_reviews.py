"""Blinded reviews: made by a safety officer, rated by whoever is named, told apart only when they are closed."""

from __future__ import annotations

import json
import re
import time

import pytest

from localmed.site.audit import Audit
from tests.web.conftest import Client, Clients
from tests.words import phrase

QUESTION = "What is the maximum dose of paracetamol in adults?"
CASES = "\n".join(
    json.dumps({"id": str(number), "question": f"Question {number}?",
                "answers": {"ours": f"Good {number} [1].", "theirs": f"Poor {number}."}})
    for number in range(3)
)  # fmt: skip
CONTROL = json.dumps({"id": "c", "question": "Is water wet?", "answers": {"ours": "Yes.", "theirs": "Bananas."},
                      "control": {"theirs": {"helpfulness": -1}}})  # fmt: skip


def made(officer: Client, **fields: str) -> str:
    """The address of a review that was made."""
    page = officer.form("/safety/reviews", **{"title": "Spring", "form_of": "lay", "reviewers": "reader", **fields})
    assert page.status_code == 200, page.text
    deadline = time.monotonic() + 60
    while "is open to its reviewers" not in page.text:
        if "is open" in page.text or time.monotonic() > deadline:
            break
        time.sleep(0.05)
        page = officer.get(page.url.path)
    (link,) = re.findall(r'href="(/safety/reviews/[\w-]+)"', officer.get("/safety/reviews").text)
    return str(link)


def rate_all(reader: Client, link: str, control: str = "-1") -> list[str]:
    """Rate all that is asked for: "Good" best; the texts in the order in which they were shown."""
    path, seen = link.replace("/safety", ""), []
    while fields := re.findall(r'name="(rate:([^:]+):\w+)" value="1"', (page := reader.get(path).text)):
        sections = re.findall(r"<section.*?</section>", page, re.DOTALL)
        texts = [re.findall(r'<p class="asked">(.*?)</p>', section, re.DOTALL)[0] for section in sections]
        seen += texts
        values = {}
        for name, code in fields:
            text = next(text for text, section in zip(texts, sections, strict=True) if f":{code}:" in section)
            values[name] = control if "Bananas" in text else "1" if "Good" in text else "-1"
        assert reader.form(path, **values).status_code == 200
    return seen


@pytest.mark.slow
@pytest.mark.extra("eval")
def test_from_cases_to_figures(copied_clients: Clients) -> None:
    officer, reader = copied_clients("safety"), copied_clients("reader")
    link = made(officer, cases=f"{CASES}\n{CONTROL}")
    assert "Spring" in reader.get("/reviews").text
    seen = rate_all(reader, link)
    assert len(seen) == 8
    assert "[1]" not in "".join(seen), "markers would tell whose it is"
    assert "All cases are rated" in reader.get(link.replace("/safety", "")).text
    page = officer.get(link).text
    assert phrase("web.reviews.blind") in page
    assert "theirs" not in page
    page = officer.form(f"{link}/close").text
    assert "+2.000" in page, "ours, mean 1, against theirs, mean -1"
    assert "helpfulness,ours,3,1.0," in officer.get(f"{link}/table").text
    assert reader.get(link.replace("/safety", "")).status_code == 404, "closed"
    officer.form(f"{link}/delete")
    assert officer.get(link).status_code == 404
    with Audit(copied_clients.settings.data) as log:
        names = [entry.action for entry in log.entries()]
        assert not any("Question" in str(entry) or "Good" in str(entry) for entry in log.entries())
    assert {"safety review", "review", "safety unblind", "safety discard"} <= set(names)


@pytest.mark.slow
def test_who_misses_quality_control_is_left_out(copied_clients: Clients) -> None:
    officer, reader = copied_clients("safety"), copied_clients("reader")
    link = made(officer, cases=f"{CASES}\n{CONTROL}")
    rate_all(reader, link, control="1")
    assert phrase("web.reviews.nothing") in officer.form(f"{link}/close").text


@pytest.mark.slow
def test_questions_are_answered_by_two_configurations(copied_clients: Clients) -> None:
    officer, reader = copied_clients("safety"), copied_clients("reader")
    link = made(officer, questions=QUESTION, generation_a="1", generation_b="1", preset_b="ebm")
    page = reader.get(link.replace("/safety", "")).text
    assert "4 g in 24 hours" in page
    assert page.count("<section") == 2


@pytest.mark.slow
def test_who_a_patient_is_does_not_reach_the_reviewers(copied_clients: Clients) -> None:
    officer, reader = copied_clients("safety"), copied_clients("reader")
    question = f"{QUESTION} Mr Zebedee Quixworth, MRN 88341234"
    link = made(officer, questions=question, generation_a="1", generation_b="1", preset_b="ebm")
    page = reader.get(link.replace("/safety", "")).text
    assert "paracetamol" in page
    assert "Quixworth" not in page
    assert "88341234" not in page


@pytest.mark.parametrize(
    "fields",
    [{}, {"questions": "q", "generation_a": "1", "generation_b": "1"}, {"cases": "no JSON"},
     {"cases": CASES, "reviewers": "nobody"}, {"cases": CASES, "form_of": "other"}],
    ids=["nothing", "one configuration", "no cases", "no account", "no form"],
)  # fmt: skip
@pytest.mark.slow
def test_what_is_no_review_is_refused(copied_clients: Clients, fields: dict[str, str]) -> None:
    officer = copied_clients("safety")
    page = officer.form("/safety/reviews", **{"title": "Spring", "form_of": "lay", "reviewers": "reader", **fields})
    deadline = time.monotonic() + 60
    while page.status_code == 200 and phrase("job.failed") not in page.text and time.monotonic() < deadline:
        time.sleep(0.05)
        page = officer.get(page.url.path)
    assert page.status_code == 400 or phrase("job.failed") in page.text
    assert phrase("web.reviews.none") in officer.get("/safety/reviews").text


@pytest.mark.slow
def test_others_neither_see_nor_rate_it(copied_clients: Clients) -> None:
    officer, reader, librarian = (copied_clients(name) for name in ("safety", "reader", "librarian"))
    link = made(officer, cases=CASES)
    own = link.replace("/safety", "")
    assert [reader.get(link).status_code, librarian.get(link).status_code] == [403, 403]
    assert librarian.get(own).status_code == 404
    assert "Spring" not in librarian.get("/reviews").text
    page = reader.get(own).text
    (name, *_) = re.findall(r'name="(rate:[^"]+)"', page)
    assert reader.form(own, **{name: "7"}).status_code == 422
    assert reader.form(own, **{"rate:9-9-a:helpfulness": "1"}).status_code == 422
    assert librarian.form(own, **{name: "1"}).status_code == 404
