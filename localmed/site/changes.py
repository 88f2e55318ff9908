"""Changes that a session makes: collections, documents, access, models, and the generation in use.

Each is checked and audited by ``Session.change``. Withdrawals and access need no new generation and take effect with
the next question; other changes are published as a whole.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.config import Settings
from localmed.domain import Collection, Document, Passage, Status, message
from localmed.domain.errors import LocalmedError, UsageError
from localmed.domain.ports import Embedder
from localmed.ingest import manifest as manifests
from localmed.ingest import pipeline
from localmed.ingest.pipeline import Progress
from localmed.library import access, generations, layout, originals, pruning, remarks
from localmed.library.access import NAME
from localmed.library.access import checked as checked  # for the pages
from localmed.library.catalogue import differences
from localmed.library.library import Builder, build
from localmed.library.remarks import Planted, Remark
from localmed.library.sketches import sketch
from localmed.library.vectors import VectorCache
from localmed.process.files import told_if_full
from localmed.process.hooks import SILENT, Hooks, following
from localmed.site import canary_gate, governing, holds, stops
from localmed.site.importing import manifest_of

if TYPE_CHECKING:
    from localmed.models.registry.registration import Model
    from localmed.site.session import Outcome, Session

LONGEST_NAME = 60  # characters; the name is a file name too, in which a Chinese character takes three bytes of 255
IDS_NAMED = 20  # of one change, in the audit log
LONGEST_NOTE = 500  # characters of a note on a passage


def put_collection(session: Session, collection: Collection) -> int:
    """Create or change a collection; return the new generation's number."""
    with _building(session, "collection", collection.name) as (builder, change):
        builder.put_collection(collection)
        change.generation = builder.publish(message("generation.made.collection", name=collection.name))
        change.outcome = f"priority {collection.priority}"
    return change.generation


def create_collection(session: Session, collection: Collection, groups: Sequence[str]) -> int:
    """Create a collection that only ``groups`` may read (none: everybody); raise as ``require_new`` does."""
    require_new(session, collection.name, groups)
    if groups:
        set_access(session, collection.name, groups)  # in advance, so that nobody else ever sees it
    return put_collection(session, collection)


def require_new(session: Session, name: str, groups: Sequence[str] = ()) -> None:
    """Raise ``UsageError`` where ``name`` or ``groups`` are invalid, or the collection exists."""
    checked(groups)
    from localmed.site.lookups import collection_names

    if not NAME.fullmatch(name):
        raise UsageError("collections.bad_name", name=name, most=LONGEST_NAME)
    if name in collection_names(session):
        raise UsageError("collections.exists", name=name)


def delete_collection(session: Session, name: str) -> int:
    """Remove the collection ``name`` with its documents; its access rights stay in case it returns."""
    with _building(session, "delete collection", name) as (builder, change):
        documents = builder.catalogue.documents(name)
        builder.remove(document.id for document in documents)
        builder.remove_collection(name)
        change.generation = builder.publish(message("generation.made.delete", name=name))
        change.outcome = f"{len(documents)}"
    manifests.forget(session.data, name)
    return change.generation


def remove(session: Session, documents: Sequence[Document]) -> int:
    """Remove documents from every index; files without any document left are forgotten."""
    with _building(session, "remove", " ".join(document.id[:12] for document in documents[:IDS_NAMED])) as (
        builder,
        change,
    ):
        builder.remove(document.id for document in documents)
        pipeline.mark_to_read_again(builder.catalogue, documents)
        change.generation = builder.publish(message("generation.made.remove", count=len(documents)))
        change.outcome = f"{len(documents)}"
    return change.generation


def mark(session: Session, document: Document, status: Status, replaced_by: str = "", reason: str = "") -> int:
    """See ``governing.mark``; return the new generation's number."""
    with _building(session, "mark", document.id) as (builder, change):
        governing.mark(builder, document.id, status, replaced_by, reason)
        change.generation = builder.publish(
            message("generation.made.mark", document=document.title, status=message(f"documents.status_{status.value}"))
        )
        change.outcome = status.value
    return change.generation


def govern(session: Session, changes: Sequence[governing.Change]) -> int:
    """See ``governing.apply``, all or nothing; return the new generation's number."""
    with _building(session, "govern", f"{len(changes)} changes") as (builder, change):
        governing.apply(
            builder, changes, lambda name: manifest_of(session, name, None), session.encoder, session.settings
        )
        change.generation = builder.publish(message("generation.made.govern", count=len(changes)))
    for governed in changes:
        session.note("govern", governed.subject, governed.fields, change.generation)
    return change.generation


def require_governable(session: Session, change: governing.Change) -> None:
    """Raise ``UsageError`` for a change that ``govern`` would refuse."""
    with session.workspace() as workspace:
        for name in {document.collection for document in change.documents}:
            governing.require_agreement(workspace.library.catalogue, manifest_of(session, name, None), [change])


def upgrade(session: Session) -> int:
    """Build a generation with the current schema and digests; return its number."""
    with _building(session, "upgrade", "library") as (builder, change):
        builder.renew()
        change.generation = builder.publish(message("generation.made.upgrade"))
        change.outcome = "served"
    return change.generation


def reindex(session: Session, again: bool = False, hooks: Hooks = SILENT) -> int:
    """Convert the library to the chosen encoder; return the new generation's number, 0 if nothing changed."""
    encoder = session.site.encoder
    with session.change("reindex", encoder.identity.stored_as) as change, following(hooks.cancel_only()):
        started, advance = hooks.counter()
        change.generation = reindexed(session.settings, encoder, advance, started, again)
        change.outcome = "served" if change.generation else "unchanged"
    return change.generation


def reindexed(
    settings: Settings, encoder: Embedder, progress: Progress, started: Callable[[int], None], again: bool = False
) -> int:
    """Build and serve a generation of ``encoder``; return its number, 0 if the one in use has it already.

    ``again`` rebuilds that one too. ``started`` receives the number of passages, ``progress`` each batch. Raise
    ``NoLibrary`` if nothing has been imported.
    """
    served = generations.served_manifest(settings.data)
    if served.encoder == encoder.identity.stored_as and not again:
        return 0
    with build(settings.data, encoder.identity, settings.library, reindex=True) as builder:
        started(len(builder.lexical))
        remaining = builder.lexical.all_passages()
        with closing(VectorCache(settings.data / layout.VECTORS, encoder)) as cache:
            while passages := list(islice(remaining, settings.library.batch)):
                builder.add_vectors(passages, cache.encode_passages(passages))
                progress(len(passages), f"{len(passages)} passages")
        return builder.publish(
            message("generation.made.reindex", before=served.encoder, after=encoder.identity.stored_as)
        )


def set_access(session: Session, collection: str, groups: Sequence[str]) -> None:
    """Let only ``groups`` read ``collection`` (none: everybody), from the next question on."""
    with session.changing("access", collection, " ".join(groups) or "everybody") as (change, entry):
        access.put(change, entry, collection, groups)


def withdraw(session: Session, document: Document, withdrawn: bool, reason: str) -> None:
    """Withdraw or reinstate a document, effective with the next query in every generation.

    Raise ``UsageError`` without a ``reason`` (``stops.require_reason``).
    """
    why = stops.require_reason(reason)
    text = _sketch_of(session, document)
    with session.changing("withdraw" if withdrawn else "reinstate", document.id) as (change, entry):
        change.withdraw(entry, document, withdrawn, why, text)


def _sketch_of(session: Session, document: Document) -> str:
    """The sketch of a document's text; "" where it is damaged, which does not prevent a withdrawal."""
    with suppress(LocalmedError), session.workspace() as workspace:
        return sketch(passage.text for passage in workspace.library.lexical.of_document(document.id))
    return ""


def remark(
    session: Session, passage: Passage, *, off: bool | None = None, note: str | None = None, cleared: bool | None = None
) -> Remark:
    """Switch a passage off or on, add a note ("": remove it), or clear it of addressing a language model.

    None leaves a value as it is. Effective with the next question in every generation; return the resulting remark.
    """
    if note is not None and (len(note) > LONGEST_NOTE or not note.isprintable()):
        raise UsageError("documents.note_long", most=LONGEST_NOTE)
    with session.change("remark", passage.id) as change:
        made = remarks.remarks(session.data).get(passage.id, remarks.about(passage))
        made = replace(made, user=session.caller.user)
        made = made if off is None else replace(made, off=off)
        made = made if note is None else replace(made, note=note.strip())
        if cleared is not None:
            made = replace(made, planted=Planted.CLEARED if cleared else Planted.SUSPECTED)
        remarks.put(session.data, made)
        change.outcome = " ".join(name for name, said in (("off", off), ("note", note), ("cleared", cleared)) if said)
        change.outcome = change.outcome or "taken back"
    return made


def rollback(session: Session, number: int | None) -> int:
    """Serve generation ``number`` (default: the one before) after checking its files.

    Files that the generation left had changed go on hold, so that the next night does not bring the changes back.
    """
    named = "before" if number is None else f"{number}"
    with session.change("rollback", f"generation {named}") as change:
        with generations.lock_writer(session.data):
            left = generations.served_number(session.data)
            change.generation = generations.rollback(session.data, number)
            with suppress(LocalmedError, sqlite3.Error):  # the generation left may be damaged
                with generations.lease(session.data) as served, generations.lease(session.data, left) as before:
                    changed = differences(served, before)
                holds.hold(session.data, changed, message("hold.rolled_back", number=left), session.caller.user)
        change.subject, change.outcome = f"generation {change.generation}", "served"
    return change.generation


def confirm(session: Session) -> int:
    """Confirm the generation in use (``generations.confirm``); return its number."""
    with session.change("confirm", "generation") as change:
        with generations.lock_writer(session.data):
            change.generation = generations.served_number(session.data)
            generations.confirm(session.data, change.generation)
        change.subject, change.outcome = f"generation {change.generation}", "confirmed"
    return change.generation


def prune(session: Session) -> tuple[int, int]:
    """Remove old generations and unneeded originals; return the number and bytes of these originals.

    The last ``library.keep_generations`` are kept, and those being read.
    """
    with session.change("prune", "generations, originals") as change:
        with generations.lock_writer(session.data):
            pruning.prune(session.data, session.settings.library.keep_generations)
            files, size = originals.prune(session.data)
        change.subject, change.outcome = f"{files} originals", f"{size} bytes freed"
    return files, size


@contextmanager
def _building(session: Session, action: str, subject: str) -> Iterator[tuple[Builder, Outcome]]:
    with (
        session.change(action, subject) as change,
        build(session.data, session.encoder.identity, session.settings.library) as builder,
    ):
        yield builder, change


# --- models -----------------------------------------------------------------------------------------------------------


def add_model(
    session: Session,
    source: Path,
    name: str,
    role: str,
    template: str,
    progress: Progress,
    started: Callable[[int], None],
) -> Model:
    """Register ``source``; see ``Registry.add``."""
    registry = session.site.registry
    with session.change("model add", name or source.name) as change, told_if_full(registry.folder):
        model = registry.add(source, session.caller.user, name, role, template, progress, started)
        change.subject, change.outcome = model.name, model.files[0].sha256[:12]
    return model


def remove_model(session: Session, name: str) -> Model:
    """Forget the model ``name`` and delete its files; see ``Registry.remove``."""
    with session.change("model remove", name) as change:
        model = session.site.registry.remove(name)
        change.outcome = "removed"
    return model


def chat_roles(session: Session) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The roles that the chat model serves, and those that ``[roles]`` of the settings give to others."""
    from localmed.answering.role_table import ROLES, RULES_FIRST

    named, left = session.settings.roles, session.site.unfit_roles | RULES_FIRST
    others = tuple(name for name in ROLES if named.get(name, "chat") != "chat")
    writable = (name for name, role in ROLES.items() if role.form)
    return tuple(name for name in writable if name not in others and (name in named or name not in left)), others


def test_chat(session: Session, progress: Callable[[int, int], object]) -> frozenset[str]:
    """Test the chat model; return the roles in which it fails, which rules serve from now on.

    Raise ``UsageError`` without a chat model, ``ModelError`` where it does not respond.
    """
    from localmed.answering import self_test
    from localmed.answering.chat import ChatRoles

    model = session.site.chat
    if model is None:
        raise UsageError("site.no_chat")
    session.may_change()
    session.site.find_out_features()
    unfit = self_test.failed(ChatRoles(model), progress)
    with session.change("model use", model.identity.name) as change:
        session.site.keep_unfit(unfit, self_test.questions())
        change.outcome = f"unfit: {' '.join(sorted(unfit))}"
    return unfit


def outdated_roles(session: Session) -> frozenset[str] | None:
    """The roles whose prompts have changed since the chat model's self-test; None without a result."""
    from localmed.answering import self_test

    model = session.site.chat
    result = session.site.registry.self_test(model.identity.name) if model else None
    return result.outdated(self_test.questions()) if model and result and result.of(model.identity) else None


def trust_chat(session: Session) -> None:
    """Let the chat model serve every role without its self-test."""
    model = session.site.chat
    if model is None:
        raise UsageError("site.no_chat")
    with session.change("model use", model.identity.name) as change:
        session.site.keep_unfit((), None)
        change.outcome = "untested"


def use_model(session: Session, role: str, name: str, progress: Progress) -> None:
    """Let ``name``, a registered or built-in model, serve ``role``; see ``Site.use``."""
    with session.change("model use", name) as change:
        canary_gate.look_at_models(session, role, name)
        session.site.use(role, name, progress)
        change.outcome = role
