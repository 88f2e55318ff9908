"""One incident as an archive: an answer with its sources, page images, trace, versions and audit log entries.

For a safety officer who investigates an answer. The question belongs to its author: it is included if they reported the
answer (the form says that the report goes to the safety officer), or if the site allows it (``web.incident_question``).
Otherwise everything that may repeat it is left out: question, record, order, sentences that are no quotations, readings
of the question, parameters of remarks. Documents' text, trace and versions are always included. Each export is recorded
in the audit log before it is made.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from localmed import __version__
from localmed.domain import Answer, Message, Origin, Statement
from localmed.domain.accounts import Right
from localmed.domain.answers import answer_json
from localmed.domain.errors import LocalmedError, UnknownName
from localmed.people import feedback, history
from localmed.site import page_images
from localmed.site.audit import Audit
from localmed.upkeep.audit_export import as_values

if TYPE_CHECKING:
    from localmed.site.session import Session

FORMAT = "localmed incident 1"
MOST_IMAGES = 40  # pages drawn; one takes some 300 ms and 150 KB
STAMP = (1980, 1, 1, 0, 0, 0)  # of every file in the archive: equal content, equal bytes


@dataclass(frozen=True, slots=True)
class Incident:
    """The archive (ZIP), whether it has the question, and the pages that could not be drawn."""

    archive: bytes
    has_question: bool
    undrawn: tuple[str, ...]


def export(session: Session, id_: str, shown: Callable[[Answer], str]) -> Incident:
    """Export the answer ``id_``, with its text rendered by ``shown``; raise ``UnknownName``."""
    session.require(Right.SAFETY)
    user, kept = history.find_answer(session, id_)
    reports = [report for report in feedback.reports(session) if report.answer_id == id_]
    with session.change("safety incident", id_) as change:
        open_question = session.settings.web.incident_question or any(report.user == user for report in reports)
        answer = kept.answer if open_question else without_question(kept.answer)
        files: dict[str, bytes] = {
            "answer.json": _json(answer_json(answer, session.caller.language)),
            "answer.txt": shown(answer).encode(),
            "trace.json": _json([{"number": number, "name": step.name, "detail": dict(step.detail),
                                  "seconds": step.seconds} for number, step in enumerate(answer.trace, 1)]),
            **{f"sources/{number}.txt": text for number, text in _source_texts(answer)},
        }  # fmt: skip
        undrawn, made = _draw(session, answer, files), answer.provenance
        with Audit(session.data) as log:
            audited = [as_values(number, entry) for number, entry in log.numbered() if id_ in entry.subject]
        facts = {
            "format": FORMAT,
            "answer": id_,
            "user": user,
            "time": _moment(kept.time),
            "question": kept.asked_text if open_question else None,
            "earlier": list(kept.asked_with.earlier) if open_question else None,
            "reports": [{"user": one.user, "time": _moment(one.time), "opinion": str(one.opinion),
                         "comment": one.comment} for one in reports],
            "versions": {"localmed": made.version, "localmed_now": __version__, "generation": made.generation,
                         "profile": made.profile, "day": made.day, "models": dict(made.models),
                         "prompts": dict(made.prompts)},
            "exported": {"by": session.caller.user, "time": _moment(datetime.now(UTC).timestamp())},
            "undrawn": list(undrawn),
            "audit": audited,
        }  # fmt: skip
        archive = _zip(facts, files)
        change.outcome = "with question" if open_question else "without question"
    return Incident(archive, open_question, undrawn)


def without_question(answer: Answer) -> Answer:
    """Return ``answer`` without anything that may repeat the question; documents' text stays."""
    check = answer.verification
    return replace(
        answer,
        question="",
        statements=tuple(map(_strip_statement, answer.statements)),
        evidence=tuple(evidence for evidence in answer.evidence if evidence.file_sha256),
        parts=(),
        notes=tuple(map(_strip, answer.notes)),
        receipts=replace(answer.receipts, readings=(), flags=()) if answer.receipts else None,
        verification=replace(
            check, reason=check.reason and _strip(check.reason), checks=tuple(map(_strip, check.checks))
        ),
        released_by="",
        released_on="",
    )


def _strip_statement(statement: Statement) -> Statement:
    """Keep a quotation; of any other statement keep only its citations."""
    verdict = statement.verdict
    bare = verdict and replace(verdict, reason=verdict.reason and _strip(verdict.reason))
    is_quoted = statement.origin is Origin.EXTRACTIVE and any(
        statement.text == citation.quote for citation in statement.citations
    )
    return replace(statement, text=statement.text if is_quoted else "", verdict=bare)


def _strip(remark: Message) -> Message:
    kept = tuple((name, value if isinstance(value, int | float) else "") for name, value in remark.parameters)
    return Message(remark.code, kept)


def _source_texts(answer: Answer) -> Iterator[tuple[str, bytes]]:
    """Yield each source's number and text, preceded by facts of its document."""
    for number, evidence in enumerate(answer.evidence, 1):
        passage = evidence.passage
        facts = (evidence.marker, evidence.document_title, evidence.edition, evidence.source, evidence.status,
                 evidence.file_sha256, passage.document_id, passage.id, *map(str, passage.pages))  # fmt: skip
        yield str(number), "\n".join((*facts, "", passage.text)).encode()


def _draw(session: Session, answer: Answer, files: dict[str, bytes]) -> tuple[str, ...]:
    """Add the pages of the answer's links, marked, to ``files``; return those that cannot be drawn."""
    known = answer.by_marker
    undrawn = []
    for number, (marker, start, end) in enumerate((link for link in answer.links if link[0] in known), 1):
        name = f"pages/{number}-source-{list(known).index(marker) + 1}.png"
        try:
            if number > MOST_IMAGES:
                raise UnknownName("kept.no_source", sources=())
            files[name] = page_images.page_image(session, known[marker], 0, (start, end))
        except (LocalmedError, OSError):
            undrawn.append(name)
    return tuple(undrawn)


def _zip(facts: dict[str, Any], files: dict[str, bytes]) -> bytes:
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    whole = {"incident.json": _json({**facts, "sha256": hashes}), **files}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in whole.items():
            archive.writestr(zipfile.ZipInfo(name, STAMP), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()
