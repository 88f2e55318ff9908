"""Evidence for buyers and approvers: one folder about this installation, with digests, signed.

::

    index.html           contents, missing parts and their sources
    attributes.html      HTI-1's source attributes; card.html: the Coalition for Health AI's model card
    hazards.html         the hazard log and what is not claimed
    models.json          every model with its files' sha256; corpus.json: every collection
    benchmarks.json      figures, badge errors among them
    sbom.cdx.json        the bundle's bill of materials
    change.json          the last generations, their reasons, and the canaries that the last change moved
    canaries.json        the canary questions, asked for this folder
    egress.*  tests.*  wcag.*  attached by --attach, or from the bundle
    SHA256SUMS           of all; SHA256SUMS.sig and .pem: signed by the site's key

Missing parts are named, not invented. The folder has no question, record or document text.
"""

from __future__ import annotations

import base64
import json
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localmed import __version__
from localmed.domain import Message, message
from localmed.domain.errors import InputError, LocalmedError, UsageError, reason
from localmed.library.intact import sha256_of
from localmed.messages import as_json
from localmed.nightly import nights
from localmed.process import files
from localmed.site import canary_gate, lookups
from localmed.upkeep import signing
from localmed.upkeep.verifier import PREFIX

if TYPE_CHECKING:
    from localmed.site.session import Session

HERE = Path(__file__).parent
SHARE = Path(sys.prefix) / "share" / "localmed"  # parts of the bundle that the installer keeps
PARTS = ("attributes", "card", "hazards", "models", "corpus", "change", "canaries", "sbom",
         "benchmarks", "tests", "egress", "wcag")  # fmt: skip
ATTACHED = ("sbom", "benchmarks", "tests", "egress", "wcag")  # parts that are files
NAMES = {"results.json": "benchmarks.json"}
SUMS = "SHA256SUMS"
MOST = 2**30  # bytes of one attached file
Page = Callable[[str, Mapping[str, Any]], str]


def write(session: Session, out: Path, attached: Sequence[Path], key: Path | None, page: Page) -> dict[str, bool]:
    """Write the folder ``out``; return which parts it has. ``page`` renders a part's values as HTML.

    Raise ``UsageError`` if the folder exists, ``InputError`` for an attachment that is no part.
    """
    if out.exists():
        raise UsageError("file.exists", file=str(out))
    signer = signing.load_key(key) if key else None
    try:
        out.mkdir(mode=0o755)
    except OSError as error:
        raise UsageError("file.unwritable", file=str(out), reason=reason(error)) from None
    try:
        for name, values in (("attributes", cards()), ("card", cards()), ("hazards", hazards())):
            _write_file(out / f"{name}.html", page(name, values).encode())
        told = {"hazards": hazards(), "models": _models(session), "corpus": _corpus(session),
                "change": _change(session), "canaries": _canaries(session)}  # fmt: skip
        for name, value in told.items():
            _write_file(out / f"{name}.json", json.dumps(value, ensure_ascii=False, indent=1).encode())
        for file in (*_installed(), *attached):
            if not (part := _part_name(file)):
                raise InputError("evidence.no_part", file=str(file), parts=ATTACHED)
            _write_file(out / part, files.contents(file, MOST))
        there = {name: any(out.glob(f"{name}.*")) for name in PARTS}
        _write_file(out / "index.html", page("index", there).encode())
        _write_sums(out, signer)
        return there
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise


def cards() -> dict[str, Any]:
    """Return HTI-1's attributes and the model card."""
    return tomllib.loads((HERE / "cards.toml").read_text("utf-8"))


def hazards() -> dict[str, Any]:
    """Return the hazard log."""
    return tomllib.loads((HERE / "hazards.toml").read_text("utf-8"))


def _models(session: Session) -> list[dict[str, Any]]:
    return [
        {"name": model.name, "role": model.role, "added": model.added, "by": model.by, "files": [
            {"name": file.name, "bytes": file.stamp.bytes, "sha256": file.sha256} for file in model.files
        ]}
        for model in session.site.registry.registrations.models.values()
    ]  # fmt: skip


def _corpus(session: Session) -> list[dict[str, Any]]:
    rows = []
    with suppress(LocalmedError), session.workspace() as workspace:
        for collection in workspace.library.catalogue.collections():
            documents = lookups.documents(session, collection.name)
            editions = sorted(document.edition for document in documents if document.edition)
            rows.append({
                "collection": asdict(collection),
                "documents": len(documents),
                "passages": sum(document.passages for document in documents),
                "status": dict(sorted(Counter(document.status.value for document in documents).items())),
                "languages": dict(sorted(Counter(document.language for document in documents).items())),
                "editions": [editions[0], editions[-1]] if editions else [],
                "without_edition": sum(not document.edition for document in documents),
            })  # fmt: skip
    return rows


def _change(session: Session) -> dict[str, Any]:
    kept = []
    with suppress(LocalmedError):
        for row in lookups.generations_kept(session):
            reason = as_json(row.reason, "en") if isinstance(row.reason, Message) else row.reason
            kept.append({"number": row.number, "served": row.served, "created": row.created, "reason": reason,
                         "documents": row.documents, "passages": row.passages})  # fmt: skip
    moved = [asdict(line) for line in nights.canary_lines(canary_gate.last(session.data))]
    return {"version": __version__, "generations": kept, "canaries_moved": moved}


def _canaries(session: Session) -> dict[str, Any]:
    try:
        compared = canary_gate.standing(session)
        kinds = {canary.id: canary.kinds for canary in canary_gate.of_served(session)} if compared.after else {}
    except LocalmedError as error:
        return {"version": __version__, "not_asked": error.message.code}
    rows = [{**asdict(result), "kinds": kinds.get(name, ())} for name, result in compared.after.items()]
    return {"version": __version__, "lost": compared.lost, "accepted": sorted(compared.accepted), "asked": rows}


def _installed() -> list[Path]:
    kept = [path for path in (SHARE / "sbom.cdx.json", *sorted((SHARE / "evidence").glob("*"))) if path.is_file()]
    return [path for path in kept if _part_name(path)]


def _part_name(file: Path) -> str:
    name = NAMES.get(file.name, file.name)
    return name if name.split(".")[0] in ATTACHED else ""


def _write_file(path: Path, content: bytes) -> None:
    files.replace(path, content, 0o644)


def _write_sums(out: Path, signer: Any) -> None:
    names = sorted(path.name for path in out.iterdir())
    content = "".join(f"{sha256_of(out / name)}  {name}\n" for name in names).encode()
    _write_file(out / SUMS, content)
    if signer is not None:
        public = base64.b64encode(PREFIX + signer.public_key().public_bytes_raw()).decode()
        _write_file(out / f"{SUMS}.sig", signer.sign(content))
        _write_file(out / f"{SUMS}.pem", f"-----BEGIN PUBLIC KEY-----\n{public}\n-----END PUBLIC KEY-----\n".encode())


def missing_parts(there: Mapping[str, bool]) -> list[Message]:
    """Return the missing parts, each with its source."""
    return [message(f"evidence.part_{name}") for name, is_there in there.items() if not is_there]
