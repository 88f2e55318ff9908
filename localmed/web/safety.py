"""The safety officer's page: stops, how often nothing was found, readers' reports, exports of answers.

Rates come from the audit log, which contains no question and outlasts the askers' history.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from localmed.domain import message
from localmed.domain.errors import NoLibrary
from localmed.messages import known
from localmed.nightly import weekly
from localmed.people import feedback, history
from localmed.presentation.answer import view
from localmed.presentation.neutral import words
from localmed.presentation.plain import plain
from localmed.site import changes, lookups, stops
from localmed.site.audit import NEWEST, Audit, Entry, Head
from localmed.site.session import DOCUMENT_CHARACTERS, Session
from localmed.site.uploads import dated
from localmed.upkeep import incident
from localmed.web import ask, pages
from localmed.web.visits import Safety

router = APIRouter(prefix="/safety")
_VERIFIED: dict[Path, Head] = {}  # up to where this process has verified the log of a data folder
ENTRIES = 200  # of the audit log shown; ``localmed audit export`` has all
_ID = re.compile(rf"\b[0-9a-f]{{{DOCUMENT_CHARACTERS},32}}\b")  # of a document, or what the log keeps of it
_ANSWER = re.compile(r"(\d+) statements(?:, badge \w+)?(?:; answer (\w+))?(?:; documents ([\w ]+))?")


@router.get("")
def overview(
    visit: Safety, action: str = "", day: str = "", document: str = "", done: str = "", what: str = ""
) -> Response:
    """Stops, rates by week, reports; the newest entries of the audit log, filtered by ``action``, ``day`` or the
    title of a ``document`` that was shown or changed.

    ``done`` says that ``what`` (kind and name) was just stopped or lifted, a document withdrawn or reinstated.
    """
    session = visit.session
    kind, _, name = what.partition(" ")
    names: dict[str, Sequence[str]] = {
        stops.COLLECTION: sorted(lookups.collection_names(session)),
        stops.WORKFLOW: stops.WORKFLOWS,
        stops.MODEL: stops.MODELS,
    }
    with Audit(session.data) as log:
        head = log.head()
        faults, verified = log.verify_newest(_VERIFIED.get(session.data))
        if verified:
            _VERIFIED[session.data] = verified
        logged = list(log.numbered())
    titles, wanted = _titles(session), document.casefold().strip()
    withdrawn = lookups.withdrawn(session) if titles else ()
    if kind == "document":
        now = "withdrawn" if any(one.id == name for one, _, _ in withdrawn) else "reinstated"
        changed = titles.get(name[:DOCUMENT_CHARACTERS], "")
    else:
        now = "stopped" if name in stops.stopped(session.data, kind) else "lifted"
        changed = pages.named(kind, name, visit.language) if name in names.get(kind, ()) else ""

    def matches(entry: Entry) -> bool:
        named = not wanted or wanted in _in_words(entry, titles, visit.language)[0].casefold()
        return action in ("", entry.action) and entry.time.startswith(day) and named

    return pages.page(
        visit,
        "safety.html",
        names=names,
        done=f"web.safety.done_{done}" if changed and done == now else "",
        changed=changed,
        withdrawn=withdrawn,
        weeks=weekly.weeks(session),
        reports=feedback.reports(session),
        head=str(head or ""),
        audit_faults=faults,
        entries=[*islice((row for row in reversed(logged) if matches(row[1])), ENTRIES)],
        actions=sorted({(pages.named("action", it.action, visit.language), it.action) for _, it in logged}),
        chosen=(action, day, document),
        in_words=lambda entry: _in_words(entry, titles, visit.language),
        verified=min(NEWEST, head.number) if head else 0,
    )


def _titles(session: Session) -> dict[str, str]:
    """The titles with editions of the documents that the reader may see, by their shortened ids in the log."""
    with suppress(NoLibrary):
        return {one.id[:DOCUMENT_CHARACTERS]: dated(one) for one in lookups.documents(session)}
    return {}


def _in_words(entry: Entry, titles: dict[str, str], language: str) -> tuple[str, str]:
    """Subject, with its reason, and outcome of ``entry`` in words; hidden and deleted documents keep their ids."""

    def titled(text: str) -> str:
        return _ID.sub(lambda it: titles.get(it[0][:DOCUMENT_CHARACTERS], it[0]), text)

    answer = _ANSWER.fullmatch(entry.subject)  # "safety" is an outcome of one, else the role of an account
    codes = (f"web.safety.outcome_{entry.outcome.partition(':')[0].replace(' ', '_')}", f"web.role.{entry.outcome}")
    shown = next((words(message(it), language) for it in codes[:: 1 if answer else -1] if known(it)), entry.outcome)
    if not answer:
        reason, (kind, _, name) = str(entry.facts.get("reason") or ""), entry.subject.partition(" ")
        stopped = entry.action in (stops.STOP, stops.LIFT) and kind != stops.COLLECTION
        subject = pages.named(kind, name, language) if stopped else titled(entry.subject)
        return " · ".join(filter(None, (subject, reason))), shown
    count, name, documents = answer.groups("")
    named = tuple(titled(one) for one in documents.split())
    lines = (
        message("web.safety.of_answer", id=name) if name else None,
        message("web.safety.statements", count=int(count)) if int(count) else None,
        message("web.safety.shown_documents", titles=named) if named else None,
    )
    return " ".join(words(line, language) for line in lines if line), shown


@router.post("/incident")
def export(visit: Safety, answer_id: Annotated[str, Form()] = "") -> Response:
    """An archive of an answer, to investigate it."""
    made = incident.export(visit.session, answer_id.strip(), lambda answer: plain(view(answer, visit.language)))
    headers = {"content-disposition": f'attachment; filename="incident-{answer_id.strip()}.zip"'}
    return Response(made.archive, media_type="application/zip", headers=headers)


@router.get("/reports/{answer_id}")
def reported_answer(visit: Safety, answer_id: str) -> Response:
    """An answer as its reporter saw it, even if a source was withdrawn since."""
    _, kept = history.reported(visit.session, answer_id)
    values = ask.answer_values(visit, kept, since=False) | {"holds": True, "sheet": True}
    return pages.page(visit, "answer.html", **values, asks=True, back="/safety")


@router.post("/reports/seen")
def see_report(visit: Safety, answer_id: Annotated[str, Form()] = "", user: Annotated[str, Form()] = "") -> Response:
    """Mark a report as seen."""
    feedback.see(visit.session, answer_id, user)
    return pages.redirect("/safety", notice="saved")


@router.post("/reports/delete")
def delete_report(visit: Safety, answer_id: Annotated[str, Form()] = "", user: Annotated[str, Form()] = "") -> Response:
    """Delete a report with its question and answer."""
    feedback.delete(visit.session, answer_id, user)
    return pages.redirect("/safety", notice="forgotten")


@router.post("/documents/{document_id}")
def withdraw(
    visit: Safety,
    document_id: str,
    reason: Annotated[str, Form()] = "",
    back: Annotated[bool, Form()] = False,
) -> Response:
    """Withdraw one document from use, or with ``back`` reinstate it."""
    changes.withdraw(visit.session, lookups.document(visit.session, document_id), not back, reason)
    return pages.redirect("/safety", done="reinstated" if back else "withdrawn", what=f"document {document_id}")


@router.post("/stop")
def stop(visit: Safety, what: Annotated[str, Form()] = "", reason: Annotated[str, Form()] = "") -> Response:
    """Stop ``what``, given as its kind and name."""
    kind, _, name = what.partition(" ")
    stops.stop(visit.session, kind, name, reason)
    return pages.redirect("/safety", done="stopped", what=what)


@router.post("/lift")
def lift(visit: Safety, what: Annotated[str, Form()] = "") -> Response:
    """Lift the stop."""
    kind, _, name = what.partition(" ")
    stops.lift(visit.session, kind, name)
    return pages.redirect("/safety", done="lifted", what=what)
