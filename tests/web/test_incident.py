"""An answer exported to be looked into: what is in the archive, whose right it is, and what it says of the asker."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localmed.domain import Message, Origin, SearchFilter, Statement
from localmed.domain.accounts import SessionRole
from localmed.domain.answers import answer_of
from localmed.domain.errors import UnknownName, UsageError
from localmed.domain.findings import Reading
from localmed.people import history
from localmed.process.hooks import Hooks
from localmed.site.audit import Audit
from localmed.site.session import Caller, Session
from localmed.site.site import Site
from localmed.upkeep import incident
from tests.cli.conftest import Localmed
from tests.fakes import HashedWords
from tests.web.conftest import Clients
from tests.web.test_ask import PDF_QUESTION
from tests.words import phrase

TELLING = f"{PDF_QUESTION} Zebedee Quixworth asks."


def asked_id(clients: Clients) -> str:
    """The id of an answer that the reader was given; what they typed named somebody."""
    session, id_ = Session(clients.site, Caller("reader", None, SessionRole.READER)), history.new_id()
    answer = session.ask(PDF_QUESTION, SearchFilter(), hooks=Hooks(answer_id=id_))
    assert answer.receipts
    assert answer.receipts.sections
    return history.keep(session, "", TELLING, replace(answer, question=TELLING), id_=id_).id


def unpacked(content: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The facts and the files of an archive, of which every hash is right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    facts = json.loads(files.pop("incident.json"))
    assert facts["sha256"] == {name: hashlib.sha256(text).hexdigest() for name, text in files.items()}
    return facts, files


def officer(clients: Clients) -> Session:
    return Session(clients.site, Caller("safety", None, SessionRole.SAFETY))


def test_an_incident_holds_everything_but_an_unreported_question(copied_clients: Clients) -> None:
    id_ = asked_id(copied_clients)
    reply = copied_clients("safety").form("/safety/incident", answer_id=id_)
    assert reply.headers["content-type"] == "application/zip"
    facts, files = unpacked(reply.content)
    assert facts["question"] is None
    assert not [name for name, text in files.items() if b"Quixworth" in text]
    assert "Quixworth" not in json.dumps(facts)
    assert (facts["user"], facts["answer"]) == ("reader", id_)
    assert {"localmed", "generation", "models", "prompts"} <= facts["versions"].keys()
    pages = [text for name, text in files.items() if name.startswith("pages/")]
    assert pages
    assert all(text.startswith(b"\x89PNG") for text in pages)
    assert any(b"vancomycin" in text for name, text in files.items() if name.startswith("sources/"))
    assert json.loads(files["trace.json"])
    assert json.loads(files["answer.json"])["receipts"]["sections"]
    assert b"25 mg/kg" in files["answer.txt"]
    assert {line["action"] for line in facts["audit"]} == {"ask", "safety incident"}


@pytest.mark.slow
def test_a_report_opens_the_question_and_so_does_the_setting(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    id_ = asked_id(copied_clients)
    reader.form(f"/answers/{id_}/report", opinion="bad", comment="too much")
    facts, files = unpacked(copied_clients("safety").form("/safety/incident", answer_id=id_).content)
    assert facts["question"] == TELLING
    assert facts["reports"][0]["comment"] == "too much"
    assert answer_of(json.loads(files["answer.json"]))
    reader.form(f"/history/{id_}/forget")
    assert unpacked(incident.export(officer(copied_clients), id_, str).archive)[0]["question"] == TELLING
    other = asked_id(copied_clients)
    web = replace(copied_clients.settings.web, incident_question=True)
    with Site(replace(copied_clients.settings, web=web), HashedWords()) as site:
        session = Session(site, Caller("safety", None, SessionRole.SAFETY))
        assert unpacked(incident.export(session, other, str).archive)[0]["question"] == TELLING


def test_the_audit_log_names_answer_documents_and_export(copied_clients: Clients) -> None:
    id_ = asked_id(copied_clients)
    incident.export(officer(copied_clients), id_, str)
    with Audit(copied_clients.settings.data) as log:
        entries = [entry for entry in log.entries() if id_ in entry.subject]
    assert [(entry.actor, entry.action) for entry in entries] == [
        ("reader", "ask"), ("safety", "safety incident"), ("safety", "safety incident"),
    ]  # fmt: skip
    answer = history.find_answer(officer(copied_clients), id_)[1].answer
    documents = {evidence.passage.document_id[:12] for evidence in answer.evidence}
    assert documents
    assert set(entries[0].subject.partition("documents ")[2].split()) == documents
    assert entries[-1].outcome == "without question"


def test_nobody_else_exports(copied_clients: Clients) -> None:
    id_ = asked_id(copied_clients)
    for role in (SessionRole.READER, SessionRole.LIBRARIAN):
        with pytest.raises(UsageError):
            incident.export(Session(copied_clients.site, Caller(role, None, role)), id_, str)
    with pytest.raises(UnknownName):
        incident.export(officer(copied_clients), "../x", str)


def test_what_is_no_quotation_goes_with_the_question(copied_clients: Clients) -> None:
    id_ = asked_id(copied_clients)
    answer = history.find_answer(officer(copied_clients), id_)[1].answer
    assert answer.receipts
    marker, start, end = answer.receipts.sections[0].link
    piece = next(one for one in answer.evidence if one.marker == marker)
    cited = (piece.citation(start, end),)
    quoted = Statement(cited[0].quote, cited, Origin.EXTRACTIVE)
    written = Statement("Zebedee needs it.", cited, Origin.GENERATED)
    note = Message("web.ask.long", (("most", 3), ("name", "Zebedee")))
    told = replace(answer.receipts, readings=(Reading("", "Zebedee's dose"),))
    bare = incident.without_question(replace(answer, statements=(quoted, written), notes=(note,), receipts=told))
    assert [line.text for line in bare.statements] == [cited[0].quote, ""]
    assert dict(bare.notes[0].parameters) == {"most": 3, "name": ""}
    assert bare.receipts == replace(answer.receipts, readings=())


def test_an_id_is_never_taken_for_an_option() -> None:
    assert all(history.new_id().isalnum() for _ in range(200))


def test_the_command_writes_the_archive(copied_clients: Clients, tmp_path: Path) -> None:
    id_ = asked_id(copied_clients)
    out = tmp_path / "incident.zip"
    ran = Localmed(copied_clients.settings.data)("incident", id_, "--out", str(out))
    assert ran.code == 0, ran
    assert phrase("incident.without_question") in ran.out
    facts, _ = unpacked(out.read_bytes())
    assert facts["answer"] == id_
    assert out.stat().st_mode & 0o077 == 0
    assert Localmed(copied_clients.settings.data)("incident", "nothing").code == 2
