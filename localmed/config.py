"""Settings: one TOML file read into frozen values, the paths under the data folder, and every bound with its unit.

The file is ``$LOCALMED_CONFIG``, else ``localmed.toml`` in the data folder, else the defaults below. The data folder is
``--data``, else ``$LOCALMED_DATA``, else ``~/.local/share/localmed``. An unknown key is an error.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from localmed.domain import message
from localmed.domain.errors import BadSettings, InputError, toml_place
from localmed.messages import LANGUAGES
from localmed.process.files import contents, replace

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Level = TypeVar("_Level", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """Bounds for parsing one file in a child process."""

    file_bytes: int = 512 * 2**20  # a textbook scan is ~200 MiB; above this it is not a document
    file_seconds: float = 300.0  # wall clock; a hostile file may never end
    file_cpu_seconds: int = 240
    child_memory_bytes: int = 2 * 2**30  # address space of the child
    pages: int = 3000  # longest textbooks run to ~2,500
    page_characters: int = 60_000  # a page of 6-point type holds ~15,000
    record_characters: int = 20_000_000  # one document's text; the longest textbooks hold ~10 million
    records: int = 2_000_000  # records in one file; a PubMed baseline file holds 30,000
    faults: int = 1_000  # refused records listed one by one; the rest are counted
    archive_bytes: int = 4 * 2**30  # unpacked size of an archive or Office file; a year of a journal is ~1 GiB
    archive_ratio: int = 200  # unpacked to packed size; XML packs 10 to 50 times, a hostile file a thousand
    archive_members: int = 50_000  # files in one archive
    archive_depth: int = 2  # an archive inside an archive is read, a third level is not
    isolation: bool = False  # True: refuse to read if the kernel cannot isolate children from network and files
    ocr: bool = True  # read pages without usable text if the engine is installed; False: report such pages
    ocr_page_seconds: float = 300.0  # besides the file's, for each such page; ~10 s of a core, ~40 if rotated
    ocr_memory_bytes: int = 4 * 2**30  # address space of the OCR child; an A4 page takes 1.3 GiB
    ocr_threads: int = 1  # for one file; files are read in parallel


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """How far an import reads ahead of encoding and writing."""

    children: int = 0  # parsing processes; 0: one for each core and each 3 GiB of free memory, at most 4
    ahead_files: int = 256  # files read ahead, so that a slow one delays few others
    clusters: tuple[str, ...] = ()  # Ray clusters that may be dialled, as "host:port"
    ahead_bytes: int = 64 * 2**20  # memory for files read ahead; a textbook of 2,500 pages takes ~50 MiB


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """Readers of this installation (``library/access.py``)."""

    groups: tuple[str, ...] = ()  # whose collections may be read; (): all, for whoever may write to the data folder
    language: str = ""  # of commands: "en" or "zh"; "": the locale's (an answer has its question's)


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """How documents are cut into passages."""

    characters: int = 1000  # length of a passage; the encoder reads 512 tokens, some 2,000 characters of English


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Hybrid search. Values marked "tuned" were chosen on questions that no reported figure uses."""

    candidates: int = 50  # taken from each index before fusion
    rrf_k: int = 60  # Cormack et al. 2009; the literature's value
    dense_weight: float = 2.0  # tuned; 1.5 to 3 are within 0.003 of each other
    lexical_weight: float = 1.0
    sparse_weight: float = 1.0  # for token weights of a sparse encoder; not tuned, no such weights were available
    title_boost: float = 3.0  # tuned; 2 to 4 are within 0.005
    query_characters: int = 4_000  # the rest of a question is ignored; ~700 words, longer than any vignette
    query_terms: int = 64  # rarest first; limits the lexical search's work
    results: int = 10
    sentences: int = 50  # fused passages to reorder by their nearest sentence; 0: keep the fused order
    sentence_fused_weight: float = 0.5  # the similarity's is 1; 0.25 to 0.75 perform alike on nine authors' questions
    sentence_words_weight: float = 0.5  # the same; 0.4 to 0.6 perform alike on twelve authors' questions
    close: float = 0.0  # score from which the first section is called close; 0: the encoder's (localmed calibrate)
    near: float = 0.0  # score below which nothing is called near; 0: the encoder's
    rerank: int = 20  # number of fused passages for the reranker
    rerank_lexical_weight: float = 0.4  # the reranker's is 1; tuned, 0.2 to 0.4 are within 0.01 of each other
    rerank_fused_weight: float = 0.2  # the same; 0 to 0.4 perform alike
    glossary: str = ""  # file with the site's own terms in two columns, English and Chinese (retrieval/search.py)


@dataclass(frozen=True, slots=True)
class TierSettings:
    """Collections in order (LINS, HRD and HERD): a preset is a list of tiers, a tier a list of kinds or collections."""

    presets: Mapping[str, tuple[tuple[str, ...], ...]] = field(
        default_factory=lambda: {
            "ebm": (("guideline",), ("literature",), ("book", "wiki"), ("leaflet",)),
            "patient": (("leaflet",), ("book", "wiki")),
        }
    )


@dataclass(frozen=True, slots=True)
class AskSettings:
    """Defaults of a question."""

    preset: str = ""  # collections for questions that name none; "": all
    passages: int = 8  # for the workflows that search passages: explain, plan, links


@dataclass(frozen=True, slots=True)
class WorkflowSettings:
    """What a site permits, and its safety messages."""

    off: tuple[str, ...] = ()  # disabled workflows: ask, plan, ebm, explain, departments, verify
    own_knowledge: bool = False  # if nothing is found, give a model's answer without sources, labelled unverified
    m_eval_kinds: tuple[str, ...] = ("guideline", "literature")  # of collections whose studies judge the answer
    m_eval_found: int = 15  # studies found by BM25; the paper's number (M-Eval)
    m_eval_kept: int = 9  # the most reliable of them, which are judged; the paper's number
    patient_presets: tuple[str, ...] = ("patient",)  # presets for patients' questions, for the safety screen
    safety_en: str = ""  # the safety message; {line} is replaced by the crisis line; "": the default (messages/)
    safety_zh: str = ""
    crisis_line: str = ""  # telephone number for the safety message; "": none
    emergency_number: str = ""  # telephone number that warnings of an emergency name, such as "120"; "": none


@dataclass(frozen=True, slots=True)
class VerificationSettings:
    """Checks of an answer before anyone reads it."""

    jury: tuple[str, ...] = ("badge",)  # roles that judge the badge by majority: badge, badge_strict


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The model folder. ``localmed models use``, else the profile, chooses which models serve."""

    folder: str = ""  # contains the registry and a folder for each model; "": <data>/models


# The model for each role unless ``localmed models use`` chose one. Roles not listed have none.
PROFILES: Mapping[str, Mapping[str, str]] = {
    "starter": {"encoder": "e5"},
    "workstation": {"encoder": "bge-m3", "reranker": "bge-reranker-v2-m3", "entailment": "nli-deberta-v3-base"},
}
NONE = "none"  # nothing serves the role
# Models of earlier versions, with the replacement used if one was chosen.
RETIRED: Mapping[str, str] = {"starter-entailment": NONE, "maxsim": NONE, "minilm": "e5"}
CHAT = "chat"  # the entailment judge is the chat model
DEFAULT = "default"  # the profile's choice
# By role, choices that need no registered model. Any other name is a registered model.
BUILT_IN: Mapping[str, tuple[str, ...]] = {"chat": (NONE,), "encoder": ("e5",), "terms": (NONE,),
    "reranker": (NONE,), "entailment": (NONE, CHAT), "planner": (NONE,)}  # fmt: skip
# Settings of earlier versions that have no effect: they are ignored, and `localmed doctor` reports them.
GONE = frozenset(
    {"ask.sentences", "ask.risk", "ask.unsure", "ask.confidence", "ask.unanswerable", "tiers.further", "reading"}
    | {"verification.unsupported", "workflows.own_samples", "search.guidelines", "search.guideline_weight"}
    | {"search.guideline_similarity", "search.guideline_coverage", "search.keyword_weight", "keywords"}
    | {"roles.keywords"}
)
MOVED = {"models.encoder": "encoder", "models.reranker": "reranker"}  # settings replaced by `localmed models use`
NEAR = 0.6  # similarity of two setting names (difflib): one letter missing or two swapped
SERVED_BY: Mapping[str, Literal["chat", "rules", "off"]] = {"starter": "rules", "workstation": "chat"}  # unset roles


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """The chat model: a GGUF file in its own child process, or a server inside the hospital."""

    context: int = 8192  # tokens of prompt and reply together; their memory is allocated when the model loads
    micro_batch: int = 256  # prompt tokens between two checks for cancellation; fewer are slower
    sequences: int = 16  # decisions processed in parallel
    threads: int = 0  # 0: the number of cores
    gpu_layers: int = -1  # model layers on the GPU; -1: all. No effect if llama.cpp was built without GPU support
    nice: int = 0  # priority of the child, 0 to 19 (lowest)
    child_memory_bytes: int = 4 * 2**30  # address space in addition to twice the model file; no limit with a GPU
    load_seconds: float = 600.0  # 40 GB from a hard disk at 80 MB/s take 500 s
    hang_seconds: float = 120.0  # without a token or micro-batch; a large model on few cores is slow, not stuck
    idle_seconds: float = 900.0  # idle time after which the model is unloaded
    reply_bytes: int = 4 * 2**20  # one message of the child or server; thousands of pages
    waiting: int = 256  # requests in the queue, in total
    waiting_each: int = 32  # of one user; the decisions of one question send several at once
    servers: tuple[str, ...] = ()  # that may be dialled, as "http://host:port"
    server: str = ""  # the server of the chat model; "": a registered model is used
    replicas: tuple[str, ...] = ()  # further servers with the same model, listed too, for load and failures
    server_model: str = ""  # the model's name on the server
    thinking: bool = False  # let a reasoning model on the server think first: takes minutes, and no label is measured
    server_seconds: float = 300.0  # for a whole reply
    connect_seconds: float = 5.0  # within the hospital
    question_seconds: float = 900.0  # for one question: a small model on few cores; then only the sections are shown


@dataclass(frozen=True, slots=True)
class HostSettings:
    """The model host (``localmed host``) and how commands use it."""

    use: bool = True  # commands use a running host if it serves the models that their settings choose
    connections: int = 64  # simultaneous; a command has one or two
    message_bytes: int = 32 * 2**20  # 256 passages with their token weights take some 5 MiB
    message_seconds: float = 30.0  # from a message's first byte to its last, on one machine
    connect_seconds: float = 2.0  # for a host to identify itself, else it is not used
    silent_seconds: float = 30.0  # without a sign of life during a request; a working host sends one every second
    answer_seconds: float = 600.0  # for vectors, scores or stances, waiting included; a chat model has its own bounds


@dataclass(frozen=True, slots=True)
class LibrarySettings:
    """Generations and indexes."""

    keep_generations: int = 3  # whose documents differ (library/pruning.py)
    index_above: int = 50_000  # rows; a flat search over fewer rows meets the time limit
    writer_memory_bytes: int = 64 * 2**20  # Tantivy's writer heap
    batch: int = 1024  # passages encoded and written together


# --- the window, the night --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LdapSettings:
    """The hospital's directory, which checks passwords (``[web.ldap]``). Without ``server`` nothing is dialled."""

    server: str = ""  # "ldaps://directory.hospital.example", or "ldap://..." with StartTLS
    ca: str = ""  # PEM file of the certificate authority; "": those that this machine trusts
    plain: bool = False  # without TLS: only for a directory on this machine
    bind_dn: str = ""  # the account for look-ups; "": anonymous
    bind_password_file: str = ""  # file with its password
    base: str = ""  # search base of people
    filter: str = "(uid={user})"  # finds a user; for Active Directory (sAMAccountName={user})
    name_attribute: str = "uid"  # the account's name here; for Active Directory sAMAccountName
    group_attribute: str = "memberOf"  # the groups of an entry; "": not used
    group_base: str = ""  # search base of groups that list their members; "": none are searched
    group_filter: str = "(|(member={dn})(uniqueMember={dn}))"
    roles: tuple[str, ...] = ()  # "DN of a group -> role [groups of readers]"; see people/sign_on.py
    seconds: float = 5.0  # for an answer of the directory


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """The hospital's single sign-on, OpenID Connect (``[web.oidc]``). Without ``issuer`` nothing is dialled."""

    issuer: str = ""  # "https://login.hospital.example/realms/hospital": the only server that is called
    ca: str = ""  # PEM file of the certificate authority; "": those that this machine trusts
    client_id: str = ""
    secret_file: str = ""  # file with the client's secret; "": a public client with PKCE
    callback: str = ""  # the redirect address, behind a proxy; "": /login/back of the address in use
    scopes: tuple[str, ...] = ("openid", "profile")
    user_claim: str = "preferred_username"
    groups_claim: str = "groups"
    ask_again: bool = True  # always ask for the user's login: on a shared PC the previous user may be signed in
    roles: tuple[str, ...] = ()  # "group -> role [groups of readers]"
    seconds: float = 5.0  # for an answer of the provider
    leeway_seconds: float = 60.0  # clock difference to the provider


@dataclass(frozen=True, slots=True)
class WebSettings:
    """How long sign-ins and answers are kept, and limits for one visitor."""

    names: tuple[str, ...] = ()  # host names under which browsers may open the server, besides localhost and --host
    idle_minutes: float = 15.0  # without a request until sign-out; NIST SP 800-63B allows 30, a shared PC needs less
    login_hours: float = 12.0  # until sign-out in any case: a shift
    wrong_passwords: int = 5  # consecutive, for one account; then the computer must wait
    wrong_accounts: int = 20  # failed accounts of one computer within an hour; then it must wait for every account
    lock_minutes: float = 15.0  # longest wait, see people/throttle.py
    password_characters: int = 12  # minimum length
    history_days: int = 7  # how long answers are kept for the user; 0: until sign-out
    report_days: int = 365  # how long feedback is kept, with question and answer; 0: no feedback
    answers_at_once: int = 2  # made at once by one process; models serve one at a time, the rest runs in parallel
    answers_waiting: int = 16  # waiting, then HTTP 429; half of the request threads stay free for search
    answers_for_one: int = 3  # of one user, running and waiting
    body_bytes: int = 2 * 2**20  # of a request other than an upload; a question or record has some thousand characters
    incident_question: bool = False  # include the question in an exported incident even if nobody reported it
    ldap: LdapSettings = field(default_factory=LdapSettings)
    oidc: OidcSettings = field(default_factory=OidcSettings)
    break_glass: tuple[str, ...] = ()  # local accounts that work only while directory and provider are down
    directory_days: int = 30  # without a sign-in, then tokens of directory and provider accounts expire
    second_person: bool = False  # uploads must be published by a second person, the approver
    question_characters: int = 20_000  # of a typed question or case; longer ones are refused with a message


@dataclass(frozen=True, slots=True)
class RefreshSettings:
    """``[refresh]``: what ``localmed refresh`` watches."""

    folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by collection, besides its imports' folders
    packs: tuple[str, ...] = ()  # folders searched for content packs: where sticks are mounted, or a share
    settle_seconds: float = 60.0  # a file modified more recently waits for the next night: it may be incomplete
    wait_seconds: float = 14_400.0  # for a librarian's change at night, such as an import, to end
    free_bytes: int = 2 * 2**30  # with less free disk space nothing is started
    keep_reports: int = 400  # nights; a year and a month
    verify: bool = True  # first read all stored files and compare their hashes


@dataclass(frozen=True, slots=True)
class BackupSettings:
    """``[backup]``: where ``localmed backup`` writes, and how many backups it keeps."""

    folder: str = ""  # on another disk; "": refresh makes no backup
    keep: int = 14  # number of backups; older ones are removed


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """``[alerts]``: who is told about a failed refresh, a full disk or a lost GPU, besides the banner."""

    syslog: bool = True  # this machine's, through /dev/log
    mail_host: str = ""  # IP address of a relay, loopback or private; "": no mail
    mail_port: int = 25
    mail_from: str = "localmed@localhost"
    mail_to: tuple[str, ...] = ()
    mail_seconds: float = 10.0  # for each answer of the relay


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a site."""

    data: Path
    profile: str = "starter"
    reader: ReaderSettings = field(default_factory=ReaderSettings)
    read: ReadBounds = field(default_factory=ReadBounds)
    ingest: IngestSettings = field(default_factory=IngestSettings)
    chunk: ChunkSettings = field(default_factory=ChunkSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    tiers: TierSettings = field(default_factory=TierSettings)
    ask: AskSettings = field(default_factory=AskSettings)
    library: LibrarySettings = field(default_factory=LibrarySettings)
    models: ModelSettings = field(default_factory=ModelSettings)
    chat: ChatSettings = field(default_factory=ChatSettings)
    host: HostSettings = field(default_factory=HostSettings)
    web: WebSettings = field(default_factory=WebSettings)
    workflows: WorkflowSettings = field(default_factory=WorkflowSettings)
    verification: VerificationSettings = field(default_factory=VerificationSettings)
    refresh: RefreshSettings = field(default_factory=RefreshSettings)
    backup: BackupSettings = field(default_factory=BackupSettings)
    alerts: AlertSettings = field(default_factory=AlertSettings)
    roles: Mapping[str, str] = field(default_factory=dict)  # role -> "chat", "rules" or "off"; others: SERVED_BY


# Lower limits of numeric settings: 0 where that switches something off, more where less would not work.
LEAST = {
    **{f"search.{name}": 0 for name in (
        "dense_weight", "lexical_weight", "sparse_weight", "rerank_lexical_weight",
        "rerank_fused_weight", "title_boost", "sentences", "sentence_fused_weight", "sentence_words_weight", "close",
        "near")},
    **dict.fromkeys(("ingest.children", "web.history_days", "web.report_days", "chat.threads", "chat.nice"), 0),
    **dict.fromkeys(("refresh.settle_seconds", "refresh.wait_seconds"), 0),
    "web.password_characters": 8,  # the minimum of NIST SP 800-63B
    "web.body_bytes": 100_000,
    "chunk.characters": 100,  # a sentence has about 100
    "read.child_memory_bytes": 256 * 2**20,  # the interpreter with its readers takes most of it
    "read.ocr_memory_bytes": 2 * 2**30,  # an A4 page takes 1.3 GiB
    "library.writer_memory_bytes": 15_000_000,  # Tantivy refuses less
    "chat.gpu_layers": -1,
    "host.silent_seconds": 3,  # a working host sends a sign of life every second
    "chat.sequences": 2,  # one is for the prefix
}  # fmt: skip
LEAST_OTHERWISE = {int: 1, float: 0.001}
MOST = {
    "web.idle_minutes": 1440,
    "web.answers_at_once": 16,
    "web.answers_waiting": 16,  # each may occupy one of the 40 request threads
    "web.login_hours": 168,
    "ingest.children": 64,
    "read.ocr_threads": 64,
    "chat.nice": 19,
    "chat.sequences": 64,  # the limit of every build of llama.cpp
    "workflows.m_eval_found": 100,  # each is read completely
}
MOST_OTHERWISE = 2**53  # accepted by every system call and library


def built_in(role: str, name: str) -> bool:
    """Whether ``name`` needs no registered model to serve ``role``."""
    return name == DEFAULT or name in BUILT_IN.get(role, ())


def model_folder(settings: Settings) -> Path:
    """The folder of the models and their registry."""
    return settings.data / Path(settings.models.folder or "models").expanduser()


def chosen_models(settings: Settings, uses: Mapping[str, str], registered: Collection[str]) -> dict[str, str]:
    """The model for each role: ``uses`` (``localmed models use``), else the profile; one of ``BUILT_IN`` or a
    registered one.

    An entailment judge of the profile that is not ``registered`` becomes none; a ``RETIRED`` model its successor.
    """
    check_profile(settings)
    chosen = dict.fromkeys(BUILT_IN, NONE) | dict(PROFILES[settings.profile])
    if chosen["entailment"] not in registered:
        chosen["entailment"] = NONE
    return chosen | {role: name if name in registered else RETIRED.get(name, name) for role, name in uses.items()}


def check_profile(settings: Settings) -> None:
    """Raise ``BadSettings`` if the profile is unknown."""
    if settings.profile not in PROFILES:
        raise BadSettings("settings.no_profile", profile=settings.profile, known=tuple(PROFILES))


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """The absolute data folder: ``folder``, else ``$LOCALMED_DATA``, else ``~/.local/share/localmed``."""
    chosen = folder or os.environ.get("LOCALMED_DATA") or Path.home() / ".local" / "share" / "localmed"
    return Path(chosen).expanduser().absolute()


def file_of(folder: Path, own: bool = True) -> Path:
    """The settings file of the data folder ``folder``; without ``own`` ``$LOCALMED_CONFIG`` is ignored."""
    named = os.environ.get("LOCALMED_CONFIG", "") if own else ""
    if named and not Path(named).exists():
        raise BadSettings("settings.no_file", file=named)
    return Path(named or folder / "localmed.toml")


def load(data: str | os.PathLike[str] | None = None, own: bool = True, file: Path | None = None) -> Settings:
    """The settings in ``file``, else of the data folder ``data``; raise ``BadSettings`` for anything invalid."""
    folder = data_folder(data)
    file = file or file_of(folder, own)
    if not file.exists():
        return Settings(folder)
    try:
        values = tomllib.loads(contents(file).decode())
    except InputError as error:
        raise BadSettings(*error.messages) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings("settings.toml", file=str(file), place=toml_place(error)) from None
    settings = _filled(Settings(folder), values, str(file), "")
    check_profile(settings)
    name, presets, language = settings.ask.preset, tuple(settings.tiers.presets), settings.reader.language
    if name and name not in presets:
        raise BadSettings("settings.no_preset", file=str(file), path="ask.preset", name=name, presets=presets)
    if language not in ("", *LANGUAGES):
        raise BadSettings("settings.choice", file=str(file), path="reader.language", choices=tuple(LANGUAGES))
    return settings


def write(data: Path, table: str, name: str, value: str) -> Settings:
    """Set ``table.name`` in the settings file of the data folder; return the settings. Other lines stay as they are.

    Raise ``BadSettings``, with the file unchanged, where it cannot be written or would not mean that.
    """
    file = file_of(data)
    by_hand = BadSettings("settings.by_hand", file=str(file), path=f"{table}.{name}", value=value)
    try:
        lines = contents(file).decode().removesuffix("\n").split("\n") if file.exists() else []
    except (InputError, UnicodeError):
        raise by_hand from None
    starts = [number for number, line in enumerate(lines) if re.match(r"\s*\[", line)]
    heads = [number for number in starts if re.fullmatch(rf"\s*\[\s*{table}\s*\]\s*(#.*)?", lines[number])]
    if not heads:
        heads, lines = [len(lines)], [*lines, f"[{table}]"]
    begin = heads[0] + 1
    end = next((number for number in starts if number >= begin), len(lines))
    others = [line for line in lines[begin:end] if not re.match(rf"\s*{name}\s*=", line)]
    new = [*lines[:begin], f"{name} = {json.dumps(value, ensure_ascii=False)}", *others, *lines[end:]]
    try:
        changed = "".join(f"{line}\n" for line in new).encode()
        with tempfile.TemporaryDirectory() as folder:
            trial = Path(folder) / file.name
            trial.write_bytes(changed)
            settings = load(data, file=trial)
        if getattr(getattr(settings, table), name) != value:
            raise by_hand
        replace(file.resolve(), changed, file.stat().st_mode & 0o777 if file.exists() else 0o600)
    except (BadSettings, OSError, UnicodeError):
        raise by_hand from None
    return settings


def obsolete_names(settings: Settings) -> tuple[str, ...]:
    """The names in the settings file that no longer have an effect."""
    file = file_of(settings.data)
    values = tomllib.loads(contents(file).decode()) if file.exists() else {}
    inner = {f"{name}.{key}" for name, value in values.items() if isinstance(value, dict) for key in value}
    return tuple(sorted(GONE & {*values, *inner}))


def _filled(settings: _Level, values: dict[str, Any], file: str, prefix: str) -> _Level:
    """``settings`` changed by ``values``, table by table."""
    known = {item.name: getattr(settings, item.name) for item in dataclasses.fields(settings)}
    changes: dict[str, Any] = {}
    for name, value in values.items():
        current = known.get(name)
        if f"{prefix}{name}" in GONE:
            continue
        if name not in known or name == "data":
            raise _unknown(prefix, name, [it for it in known if it != "data"], file)
        path = f"{prefix}{name}"
        if dataclasses.is_dataclass(current) and not isinstance(current, type) and isinstance(value, dict):
            changes[name] = _filled(current, value, file, f"{path}.")
        elif path == "roles" and isinstance(value, dict):
            changes[name] = {
                role: text(value[role], f"roles.{role}", file) for role in value if f"roles.{role}" not in GONE
            }
        elif path == "refresh.folders" and isinstance(value, dict):
            changes[name] = {key: names(value[key], f"{path}.{key}", file, 1) for key in value}
        elif isinstance(current, Mapping) and isinstance(value, dict):
            changes[name] = {**current, **{preset: _tiers(value[preset], f"{path}.{preset}", file) for preset in value}}
        elif isinstance(current, tuple):
            changes[name] = names(value, path, file)
        elif isinstance(current, float) and isinstance(value, int) and not isinstance(value, bool):
            changes[name] = float(within(value, path, file, float))
        elif type(value) is type(current):
            changes[name] = within(value, path, file, type(value))
        else:
            name = type(current).__name__ if type(current) in (bool, int, float, str) else "table"
            raise BadSettings("settings.type", file=file, path=path, kind=message(f"settings.kind_{name}"))
    return dataclasses.replace(settings, **changes)


def _unknown(prefix: str, name: str, known: Sequence[str], file: str) -> BadSettings:
    """The error for an unknown setting, naming similar settings of its table or tables that have it."""
    path = f"{prefix}{name}"
    if path in MOVED:
        return BadSettings("settings.moved", file=file, name=path, role=MOVED[path])
    near = [f"{prefix}{it}" for it in difflib.get_close_matches(name, known, 3, NEAR)]
    for table in known if not prefix else ():
        value = getattr(Settings(Path()), table)
        if dataclasses.is_dataclass(value) and name in {it.name for it in dataclasses.fields(value)}:
            near.append(f"{table}.{name}")
    if near:
        return BadSettings("settings.unknown_near", file=file, name=path, near=tuple(near))
    return BadSettings("settings.unknown", file=file, name=path)


def _tiers(value: Any, path: str, file: str) -> tuple[tuple[str, ...], ...]:
    """A preset: at least one tier, each a list of names."""
    if not isinstance(value, list) or not value:
        raise BadSettings("settings.tiers", file=file, path=path)
    return tuple(names(tier, path, file, least=1) for tier in value)


# --- validation of values ---------------------------------------------------------------------------------------------


def within(value: Any, path: str, file: str, kind: type = int) -> Any:
    """``value``; raise ``BadSettings`` for a number outside its range (``LEAST``, ``MOST``)."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        least, most = LEAST.get(path, LEAST_OTHERWISE[kind]), MOST.get(path, MOST_OTHERWISE)
        if not least <= value <= most:  # also for nan
            raise BadSettings("settings.range", file=file, path=path, least=least, most=most)
    return value


def names(value: Any, path: str, file: str, least: int = 0) -> tuple[str, ...]:
    """``value`` as a tuple; raise ``BadSettings`` unless it is a list of at least ``least`` names."""
    if isinstance(value, list) and len(value) >= least and all(isinstance(name, str) and name for name in value):
        return tuple(value)
    raise BadSettings("settings.names", file=file, path=path)


def text(value: Any, path: str, file: str) -> str:
    """``value``; raise ``BadSettings`` unless it is a text that is not empty."""
    if isinstance(value, str) and value:
        return value
    raise BadSettings("settings.text", file=file, path=path)
