"""A process's settings, models, registry and pool of open libraries. Only this module chooses implementations.

Models and indexes load at first use, so that a command pays only for what it uses. A site is thread-safe: each model is
made once and, unless a host owns it, works for one thread at a time, as does an open library.

Models are chosen again when the registry's record changes, and when a model host starts, ends or becomes responsive. A
question keeps the models that it began with; they are closed after the last such question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from threading import Lock, RLock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from localmed.answering.chat import ChatEntailment, YesNo
from localmed.answering.check import CHECK
from localmed.config import CHAT, DEFAULT, NONE, Settings, built_in, check_profile, chosen_models, model_folder
from localmed.domain.errors import LocalmedError, ModelError, UsageError
from localmed.domain.ports import CountingChat, Embedder, Entailment, NoJudge, Reranker
from localmed.library import generations
from localmed.library.holding import today
from localmed.library.library import Library
from localmed.library.reading import name_damage, require_unaltered
from localmed.models import choice
from localmed.models.checkpoint import ENGLISH
from localmed.models.choice import FITTED
from localmed.models.host import client
from localmed.models.host.client import NOTHING, Hosted, at_low_priority
from localmed.models.host.protocol import FOLDER, SOCKET
from localmed.models.queue import owned
from localmed.models.registry import registration, tested
from localmed.models.registry.registry import Registry
from localmed.retrieval.concepts import Expand
from localmed.site import stops
from localmed.site.workspace import Workspace

if TYPE_CHECKING:
    from localmed.ingest.pipeline import Progress
    from localmed.models.host.protocol import Status as HostStatus
    from localmed.models.host.server import Host
    from localmed.models.llama.adapter import LlamaChat

Item = TypeVar("Item")
MOST_IDLE = 32  # open libraries: as many as concurrent threads, for two groups of readers
Answering = tuple[int, frozenset[str], int]  # choice of models, stopped models, time of the generation's last repair
Key = tuple[Answering, Path, frozenset[str]]  # what answers, its generation, the hidden collections
Stamp = tuple[tuple[int, int] | None, ...]  # of the files that decide which models serve


class Made:
    """The models made for one choice, each once; closed when their last user has finished."""

    _numbers = count()

    def __init__(self, stamp: Stamp) -> None:
        self.stamp, self.number = stamp, next(self._numbers)
        self._lock, self._making = RLock(), RLock()
        self._by_name: dict[str, Any] = {}
        self._users, self._retired, self._closed = 0, False, False

    def once(self, name: str, make: Callable[[], Item]) -> Item:
        """The item ``name``, made by the first thread that needs it; raise ``ModelError`` once closed."""
        if name not in self._by_name:
            with self._making:
                if self._closed:
                    raise ModelError("model.chosen_anew")
                if name not in self._by_name:
                    self._by_name[name] = make()
        item: Item = self._by_name[name]
        return item

    @property
    def lost(self) -> bool:
        """Whether its model host has ended, has other models now, or was busy and responds again."""
        return any(isinstance(item, Hosted) and item.lost for item in list(self._by_name.values()))

    @contextmanager
    def used(self) -> Iterator[None]:
        """Keep it open within the block."""
        with self._lock:
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
            self._close_unused()

    def retire(self) -> None:
        """Close it as soon as nobody uses it."""
        self._retired = True
        self._close_unused()

    def _close_unused(self) -> None:
        with self._lock:
            if self._users or not self._retired or self._closed:
                return
            self._closed = True
        for item in self._by_name.values():
            if isinstance(item, choice.Closing):
                item.close()


class Models:
    """The models that serve one data folder, each made at first use."""

    def __init__(
        self,
        settings: Settings,
        encoder: Embedder | None,
        uses: Mapping[str, str],
        chat: CountingChat | None,
        made: Made,
    ) -> None:
        """``encoder``, ``chat`` and ``uses`` (role -> model) override what was chosen."""
        self.settings = settings
        self._encoder, self._chat, self._uses = encoder, chat, uses
        self._working = RLock()
        self._kept = made

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.settings.data

    # --- models ----------------------------------------------------------------------------------------------------

    @property
    def encoder(self) -> Embedder:
        """The chosen encoder."""
        return self._hosted.encoder or self._once("encoder", lambda: owned(self._own_encoder, self._working))

    @property
    def encoder_maker(self) -> Callable[[], Embedder]:
        """A picklable function that makes the encoder in another process."""
        return (
            partial(_itself, self._encoder) if self._encoder else partial(choice.encoder, self.serving, self.registry)
        )

    @property
    def safety_encoder(self) -> Embedder:
        """multilingual-e5-small, whatever was chosen: the suicide-risk classifier was fitted on its vectors."""
        if self._encoder or self.serving["encoder"] == FITTED:
            return self.encoder
        make = partial(choice.encoder, {"encoder": FITTED}, self.registry)
        return self._hosted.fitted or self._once("fitted", lambda: owned(make(), self._working))

    @property
    def emergency_encoder(self) -> Embedder:
        """The same without centring of the vectors: the emergency classifier was fitted on those."""
        from localmed.models.e5 import Uncentred

        return self._encoder or Uncentred(self.safety_encoder)

    @property
    def patient_encoder(self) -> Embedder:
        """The encoder with low priority at the model host, for long work."""
        return at_low_priority(self.encoder)

    @property
    def reranker(self) -> Reranker | None:
        """The chosen reranker."""
        if "reranker" in self._stopped:
            return None
        if self._hosted.reranker:
            return self._hosted.reranker
        reranker = self._once("reranker", lambda: choice.reranker(self.serving, self.registry, self._own_encoder))
        return owned(reranker, self._working) if reranker else None

    @property
    def chat(self) -> CountingChat | None:
        """The chosen chat model, if any; it loads at the first request."""
        if "chat" in self._stopped:
            return None
        return (
            self._chat
            or self._hosted.chat
            or self._once("chat", lambda: choice.chat(self.settings.chat, self.serving, self.registry))
        )

    @property
    def planner(self) -> CountingChat | None:
        """The model tuned to plan sources (``localmed train``), if chosen; it serves that role only."""
        name = NONE if "planner" in self._stopped else self.serving["planner"]
        return self._once(f"planner {name}", lambda: self.writer(name))

    def writer(self, name: str) -> LlamaChat | None:
        """The registered chat model or planner ``name``, in a child process that the caller closes."""
        return choice.open_chat(name, self.settings.chat, self.registry)

    @property
    def entailment(self) -> Entailment:
        """The judge of entailment: the chosen cross-encoder, the chat model, else none."""
        by_chat = self.chat_judges
        if self._stopped & {"entailment", "chat" if by_chat else "entailment"}:
            return NoJudge()
        return self._hosted.entailment or self._once(f"entailment {by_chat}", self._own_entailment)

    @property
    def chat_judges(self) -> bool:
        """Whether the chat model judges: it was chosen, or nothing was and it passed the self-test in checking."""
        if self.serving["entailment"] != NONE or "entailment" in {**self._record.roles, **self._uses}:
            return self.serving["entailment"] == CHAT
        return self._chat is None and self.chat is not None and CHECK.name not in self.unfit_roles

    @property
    def expand(self) -> Expand:
        """The function that expands abbreviations."""
        from localmed.models import abbreviations

        return abbreviations.expand

    @property
    def _own_encoder(self) -> Embedder:
        return self._encoder or self._once("own encoder", lambda: choice.encoder(self.serving, self.registry))

    def _own_entailment(self) -> Entailment:
        judge = choice.entailment(self.serving, self.registry)
        if judge is None and (answering := choice.judging_chat(self.settings.chat, self.serving, self.registry)):
            return YesNo(answering, self.registry.model(self.serving["entailment"]).languages or ENGLISH)
        if judge is None and self.chat and self.chat_judges:
            return ChatEntailment(self.chat)
        return owned(judge, self._working) if judge else NoJudge()

    @property
    def _stopped(self) -> frozenset[str]:
        return stops.stopped(self.data, stops.MODEL)

    @property
    def _hosted(self) -> Hosted:
        if self._encoder:
            return NOTHING
        return self._once("hosted", lambda: client.connect(self.data, self.settings.host, self._choices()))

    # --- which models serve ----------------------------------------------------------------------------------------

    @property
    def registry(self) -> Registry:
        """The registered models."""
        return self._once("registry", lambda: Registry(model_folder(self.settings)))

    @property
    def serving(self) -> dict[str, str]:
        """The model that serves each role: chosen by ``localmed models use``, else by the profile."""
        record = self._record
        uses = {role: name for role, name in {**record.roles, **self._uses}.items() if name != DEFAULT}
        chosen = chosen_models(self.settings, uses, record.models)
        return chosen | {"chat": choice.server_name(self.settings.chat)} if self.settings.chat.server else chosen

    @property
    def _record(self) -> registration.Registrations:
        return self._once("record", lambda: self.registry.registrations)

    @property
    def chat_chosen(self) -> bool:
        """Whether a chat model was chosen, or the settings name a server; it then serves on every profile."""
        return bool(self.settings.chat.server) or self._record.roles.get("chat", NONE) not in (NONE, DEFAULT)

    @property
    def unfit_roles(self) -> frozenset[str]:
        """The roles served by rules although there is a chat model: those in which it failed its self-test.

        Without a self-test these are all roles; none for a chat model that the caller brings, who tests it.
        """
        from localmed.answering import self_test
        from localmed.answering.role_table import ROLES

        chat = self.chat
        if chat is None:
            return frozenset()
        result = self._once("self-test", lambda: tested.read(self.registry.folder))
        failed = tested.unfit(result, chat.identity, self_test.questions())
        return frozenset(() if self._chat else ROLES) if failed is None else failed

    def _choices(self) -> dict[str, str]:
        return choice.choices(self.serving, self._record, self.settings.chat)

    def _once(self, name: str, make: Callable[[], Item]) -> Item:
        return self._kept.once(name, make)


class Pool:
    """Open libraries that are idle, because opening one takes longer than a question. Thread-safe."""

    def __init__(self) -> None:
        self._lock, self._closed = Lock(), False
        self._idle: list[tuple[Key, Workspace]] = []

    def take(self, key: Key) -> Workspace | None:
        """An idle library of ``key``; closes those of another generation."""
        with self._lock:
            stale = [entry for entry in self._idle if entry[0][:2] != key[:2]]
            self._idle = [entry for entry in self._idle if entry[0][:2] == key[:2]]
            place = next((place for place, entry in enumerate(self._idle) if entry[0] == key), None)
            taken = self._idle.pop(place)[1] if place is not None else None
        self._close(stale)
        return taken

    def give_back(self, key: Key, opened: Workspace, keep: bool) -> None:
        """Keep ``opened`` for reuse, or close it; closes the longest idle ones above ``MOST_IDLE``."""
        with self._lock:
            keep = keep and not self._closed  # a page drawn ahead may outlive the site
            self._idle += [(key, opened)] if keep else []
            surplus, self._idle = self._idle[:-MOST_IDLE], self._idle[-MOST_IDLE:]
        self._close([*surplus, *([] if keep else [(key, opened)])])

    def close(self) -> None:
        """Close all idle libraries, and every one given back later."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        self._close(idle)

    def _close(self, idle: Iterable[tuple[Key, Workspace]]) -> None:
        for _, opened in idle:
            opened.library.close()


class Site(Models, AbstractContextManager["Site"]):
    """One data folder with its settings, for all callers of this process."""

    def __init__(
        self,
        settings: Settings,
        encoder: Embedder | None = None,
        uses: Mapping[str, str] = MappingProxyType({}),
        day: Callable[[], str] = today,
        chat: CountingChat | None = None,
    ) -> None:
        """``encoder``, ``chat`` and ``uses`` (role -> model) override the choice; ``day`` returns the date (ISO)."""
        check_profile(settings)
        super().__init__(settings, encoder, uses, chat, Made(()))
        self.day = day
        self._choosing = RLock()
        self._pool = Pool()

    def __exit__(self, *_: object) -> None:
        """Close the site."""
        self.close()

    def close(self) -> None:
        """Release the leases on generations and end the chat model's process."""
        self._pool.close()
        self._replace(())

    # --- libraries -------------------------------------------------------------------------------------------------

    @contextmanager
    def workspace(self, hidden: Collection[str] = (), day: str = "") -> Iterator[Workspace]:
        """The generation in use without the collections ``hidden``, leased for the length of the block.

        ``day`` overrides the site's date. The generation stays the same within the block, whatever is published
        meanwhile.
        """
        apart = frozenset(hidden)
        with self._used() as made, generations.lease(self.data) as path:
            key = self._answers_by(made, path)
            pooled = self._pool.take((key, path, apart))
            opened = pooled or self._opened(path, apart, self._as_of(made))
            opened.library.holding.day = day or self.day()
            whole = False
            try:
                if pooled:
                    require_unaltered(path)
                with name_damage(path):
                    yield opened
                whole = True
            finally:
                self._pool.give_back((key, path, apart), opened, keep=whole and self._is_current(key, path))

    def _is_current(self, key: Answering, path: Path) -> bool:
        with suppress(LocalmedError, OSError):
            served = generations.served_number(self.data) == int(path.name)
            return served and self._answers_by(self._now(), path) == key
        return False

    def _answers_by(self, made: Made, path: Path) -> Answering:
        """The models and the state of ``path`` that an open library was opened with."""
        return made.number, self._stopped, path.stat().st_mtime_ns

    @contextmanager
    def candidate(self, generation: Path, hidden: Collection[str] = ()) -> Iterator[Workspace]:
        """The unserved generation in the folder ``generation``, with this site's models."""
        with Library.of(self.data, generation, frozenset(hidden), self.day(), checked=True) as library:
            yield Workspace(library, self)

    @contextmanager
    def with_models(self, uses: Mapping[str, str], settings: Settings | None = None) -> Iterator[Site]:
        """This site with other models (role -> model) or ``settings``, as a trial."""
        with Site(settings or self.settings, self._encoder, {**self._uses, **uses}, self.day, self._chat) as other:
            yield other

    def _opened(self, generation: Path, hidden: frozenset[str], models: Models) -> Workspace:
        library = Library.of(self.data, generation, hidden, self.day())
        try:
            if nearest := models._hosted.nearest:
                name = library.path.name
                library.searched_by(partial(nearest.search, name), partial(nearest.similarities, name))
            return Workspace(library, models)
        except BaseException:  # else the lease would outlive the library
            library.close()
            raise

    # --- models chosen anew ----------------------------------------------------------------------------------------

    def _once(self, name: str, make: Callable[[], Item]) -> Item:
        with self._used() as made:
            return made.once(name, make)

    def _now(self) -> Made:
        stamp = self._stamp()
        with self._choosing:
            if self._kept.stamp != stamp or self._kept.lost:
                self._replace(stamp)
            return self._kept

    @contextmanager
    def _used(self) -> Iterator[Made]:
        with ExitStack() as stack:
            with self._choosing:  # no replacement between the two steps
                made = self._now()
                stack.enter_context(made.used())
            yield made

    def _as_of(self, made: Made) -> Models:
        models = Models(self.settings, self._encoder, self._uses, self._chat, made)
        models._working = self._working
        return models

    def _replace(self, stamp: Stamp) -> None:
        with self._choosing:
            before, self._kept = self._kept, Made(stamp)
        before.retire()

    def _stamp(self) -> Stamp:
        models = model_folder(self.settings)
        files = (models / registration.FILE, models / tested.FILE, self.data / FOLDER / SOCKET)
        return tuple(map(_stamp_of, files))

    # --- changes ---------------------------------------------------------------------------------------------------

    def find_out_features(self) -> None:
        """Probe the settings' chat server; if its features are new, mark its self-test as outdated."""
        from localmed.answering.role_table import ROLES

        if not self.settings.chat.server or self.chat is None:
            return
        found = choice.server(self.settings.chat, self.registry).probe()
        if found != tested.features(self.registry.folder, self.chat.identity.name):
            self.keep_unfit(ROLES, {}, found)

    def keep_unfit(
        self, roles: Collection[str], questions: Mapping[str, str] | None, features: tested.Features | None = None
    ) -> None:
        """Record the ``roles`` in which the chat model failed these ``questions``; None: trusted untested.

        ``features``: the server's features, where they were probed.
        """
        if self.chat:
            tested.keep(self.registry.folder, self.chat.identity, roles, questions, features)

    def use(self, role: str, name: str, progress: Progress) -> None:
        """Let ``name`` (a registered model, one of ``BUILT_IN``, or ``DEFAULT``) serve ``role``.

        Raise ``UsageError`` for a model that cannot serve it, ``ModelError`` for one that has changed or is incomplete.
        """
        record = self.registry.registrations
        if not built_in(role, name):
            self.registry.check_role(role, name)
        roles = {**record.roles, role: name}
        if name == DEFAULT:
            del roles[role]
        choice.check(role, chosen_models(self.settings, roles, record.models), self.registry)
        if (role, name) == ("entailment", CHAT) and self.chat is None:
            raise UsageError("site.no_chat")
        if built_in(role, name):
            self.registry.assign(role, name)
        else:
            self.registry.use(role, name, progress)

    # --- the model host --------------------------------------------------------------------------------------------

    def serve_models(self, stop: int, ready: Callable[[HostStatus, Path], None]) -> None:
        """Run the model host of this data folder until the file descriptor ``stop`` becomes readable."""
        from localmed.library.dense import Nearest
        from localmed.models.host import server

        def made() -> Host:
            return server.make_host(self.settings, self.serving, self.registry, Nearest(self.data))

        server.serve(self.data, made, ready, stop)

    def host_status(self) -> HostStatus | None:
        """The status of the model host, None without one; raise ``ModelError`` if it responds wrongly."""
        return client.status(self.data, self.settings.host, self._choices())


def _itself(encoder: Embedder) -> Embedder:
    return encoder


def _stamp_of(path: Path) -> tuple[int, int] | None:
    """A value that changes when the file is written again; None for a missing file."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_ino
