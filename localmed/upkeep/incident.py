"""One incident in one archive: an answer with its sources, page images, trace, versions and its lines of the audit log.

For a safety officer who has to tell how an answer came to be. What was asked belongs to whoever asked: it is in the
archive where they reported the answer, which says that it goes to the safety officer, or where the site lets it
(``web.incident_question``). Otherwise everything goes that can hold a word of it: question, record, order, sentences
that are no quotations, how the question was read, the parameters of remarks. What the documents say, trace and versions
are there in any case. Each export is a change in the audit log, noted before it is made.
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
from localmed.people.feedback import Report
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
    """The archive (ZIP); whether the question is in it; the pages that could not be drawn."""

    archive: bytes
    has_question: bool
    undrawn: tuple[str, ...]


def export(session: Session, id_: str, shown: Callable[[Answer], str]) -> Incident:
    """The archive of the answer ``id_``, with its text as ``shown`` makes it; raise ``UnknownName`` for none."""
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
            **{f"sources/{number}.txt": text for number, text in _texts(answer)},
        }  # fmt: skip
        undrawn, made = _draw(session, answer, files), answer.provenance
        facts = {
            "format": FORMAT,
            "answer": id_,
            "user": user,
            "time": _moment(kept.time),
            "question": kept.asked_text if open_question else None,
            "earlier": list(kept.asked_with.earlier) if open_question else None,
            "reports": [_report(report) for report in reports],
            "versions": {"localmed": made.version, "localmed_now": __version__, "generation": made.generation,
                         "profile": made.profile, "day": made.day, "models": dict(made.models),
                         "prompts": dict(made.prompts)},
            "exported": {"by": session.caller.user, "time": _moment(datetime.now(UTC).timestamp())},
            "undrawn": list(undrawn),
            "audit": _audited(session, id_),
        }  # fmt: skip
        archive = _zipped(facts, files)
        change.outcome = "with question" if open_question else "without question"
    return Incident(archive, open_question, undrawn)


# --- what is left without the question --------------------------------------------------------------------------------


def without_question(answer: Answer) -> Answer:
    """``answer`` with what its documents say, and nothing that can hold a word of what was asked."""
    check = answer.verification
    return replace(
        answer,
        question="",
        statements=tuple(map(_quoted_only, answer.statements)),
        evidence=tuple(evidence for evidence in answer.evidence if evidence.file_sha256),
        parts=(),
        notes=tuple(map(_bare, answer.notes)),
        receipts=replace(answer.receipts, readings=(), flags=()) if answer.receipts else None,
        verification=replace(
            check, reason=check.reason and _bare(check.reason), checks=tuple(map(_bare, check.checks))
        ),
        released_by="",
        released_on="",
    )


def _quoted_only(statement: Statement) -> Statement:
    """A quotation as it is; of every other sentence only that it was there, and where it pointed."""
    verdict = statement.verdict
    bare = verdict and replace(verdict, reason=verdict.reason and _bare(verdict.reason))
    is_quoted = statement.origin is Origin.EXTRACTIVE and any(
        statement.text == citation.quote for citation in statement.citations
    )
    return replace(statement, text=statement.text if is_quoted else "", verdict=bare)


def _bare(remark: Message) -> Message:
    """The remark's code with its numbers."""
    kept = tuple((name, value if isinstance(value, int | float) else "") for name, value in remark.parameters)
    return Message(remark.code, kept)


# --- the files --------------------------------------------------------------------------------------------------------


def _texts(answer: Answer) -> Iterator[tuple[str, bytes]]:
    """Of each source its marker as a file's name and what it says, below the facts of its document."""
    for number, evidence in enumerate(answer.evidence, 1):
        passage = evidence.passage
        facts = (evidence.marker, evidence.document_title, evidence.edition, evidence.source, evidence.status,
                 evidence.file_sha256, passage.document_id, passage.id, *map(str, passage.pages))  # fmt: skip
        yield str(number), "\n".join((*facts, "", passage.text)).encode()


def _draw(session: Session, answer: Answer, files: dict[str, bytes]) -> tuple[str, ...]:
    """Put the pages that could be opened into ``files``, marked; return those that cannot be drawn (any more)."""
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


def _zipped(facts: dict[str, Any], files: dict[str, bytes]) -> bytes:
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    whole = {"incident.json": _json({**facts, "sha256": hashes}), **files}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in whole.items():
            archive.writestr(zipfile.ZipInfo(name, STAMP), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _audited(session: Session, id_: str) -> list[dict[str, Any]]:
    """The lines of the audit log that name the answer."""
    with Audit(session.data) as log:
        return [as_values(number, entry) for number, entry in log.numbered() if id_ in entry.subject]


def _report(report: Report) -> dict[str, Any]:
    values = {"user": report.user, "time": _moment(report.time), "opinion": report.opinion, "comment": report.comment}
    return {name: str(value) for name, value in values.items()}


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()
