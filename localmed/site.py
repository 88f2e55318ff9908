"""One a process: settings, models, registry and a pool of open libraries. The only place that chooses implementations.

Everything heavy is made when first needed, so that a command pays for what it uses: a Chinese question never loads the
encoder, a listing never loads an index. Several threads may use a site: each model is made once and, unless a host owns
it, works for one thread at a time, as does an open library.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from localmed.agents.asking import COHERENCE
from localmed.agents.chat_entailment import ChatEntailment, YesNo
from localmed.config import CHAT, DEFAULT, NONE, Settings, built_in, chosen_models, model_folder, profile_known
from localmed.errors import UsageError
from localmed.library import generations
from localmed.library.access import Access
from localmed.library.holding import today
from localmed.library.library import Library
from localmed.library.pool import Answering, Pool
from localmed.library.reading import reading, unaltered
from localmed.models import choice
from localmed.models.checkpoint import ENGLISH
from localmed.models.host.adapters import NOTHING, Hosted, connect, unhurried
from localmed.models.one_owner import owned
from localmed.models.registry.registry import Registry
from localmed.operations import stops
from localmed.ports import CountingChat, Embedder, Entailment, Reranker
from localmed.retrieval.calibration import Calibration, calibrations
from localmed.retrieval.concepts import Expand
from localmed.verification.likeness import LikenessOnly
from localmed.workspace import Workspace

if TYPE_CHECKING:
    from localmed.ingest.pipeline import Progress
    from localmed.models.host.server import Host
    from localmed.models.host.server import Status as HostStatus
    from localmed.models.llama.adapter import LlamaChat

Made = TypeVar("Made")
Own = tuple[Calibration, ...] | None  # a site's calibrations; None: those that are kept


class Site:
    """One data folder with its settings, for every caller of this process. A context manager."""

    def __init__(
        self,
        settings: Settings,
        encoder: Embedder | None = None,
        uses: Mapping[str, str] = MappingProxyType({}),
        day: Callable[[], str] = today,
        chat: CountingChat | None = None,
    ) -> None:
        """``encoder``, ``chat`` and ``uses`` (role -> model) override what was chosen; ``day`` tells the date (ISO)."""
        profile_known(settings)
        self.settings, self.day = settings, day
        self.access = Access(settings.data)
        self._encoder, self._chat, self._uses = encoder, chat, uses
        self._making, self._working = RLock(), RLock()
        self._made: dict[str, Any] = {}
        self._calibrations: Own = None  # in place of the site's, for a look
        self._models = 0  # how often other models were chosen; a workspace keeps those that it was opened with
        self._pool = Pool[Workspace](lambda workspace: workspace.library.close())

    def __enter__(self) -> Site:
        """The site itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what was opened."""
        self.close()

    def close(self) -> None:
        """Give up the leases on generations, the connections to the host and the chat model's process."""
        self._pool.close()
        self._forget_models()

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.settings.data

    # --- libraries -------------------------------------------------------------------------------------------------

    @contextmanager
    def workspace(self, hidden: Collection[str] = (), day: str = "") -> Iterator[Workspace]:
        """The generation being served now without the collections ``hidden``, leased for the length of the block.

        It is as of ``day`` (the site's). One and the same through a whole question, whatever is published meanwhile.
        """
        path, apart = generations.current(self.data), frozenset(hidden)
        models = self._answers_by(path)
        pooled = self._pool.take((models, path, apart))
        opened = pooled or self._opened(apart)
        opened.library.holding.day = day or self.day()
        whole = False
        try:
            if pooled:
                unaltered(path)
            with reading(opened.library.path):
                yield opened
            whole = True
        finally:
            served = whole and self._answers_by(path) == models
            served = served and generations.current(self.data) == opened.library.path
            self._pool.give_back((models, opened.library.path, apart), opened, keep=served)

    def _answers_by(self, path: Path) -> Answering:
        """What an open library is good for: these models, and the files of ``path`` as they lie there, none mended."""
        return self._models, self._stopped, path.stat().st_mtime_ns

    @contextmanager
    def candidate(self, generation: Path, hidden: Collection[str] = ()) -> Iterator[Workspace]:
        """The generation in the folder ``generation``, which is not served (yet), by the models that it would have."""
        from localmed.library import candidate

        with candidate.opened(self.data, generation, frozenset(hidden), self.day()) as library:
            same = library.manifest.encoder == self.encoder.identity.slug
            with nullcontext(self) if same else self.with_models({"encoder": self.chosen["encoder"]}) as other:
                yield Workspace(library, other)

    @contextmanager
    def with_models(self, uses: Mapping[str, str], settings: Settings | None = None, own: Own = None) -> Iterator[Site]:
        """This site as it would be with other models (role -> model), ``settings`` or calibrations, for a look."""
        with Site(settings or self.settings, self._encoder, {**self._uses, **uses}, self.day, self._chat) as other:
            other._calibrations = own
            yield other

    @property
    def calibrations(self) -> tuple[Calibration, ...]:
        """What the site's own questions came to; raise ``Damaged`` where that is not as it was stored."""
        return calibrations(self.data) if self._calibrations is None else self._calibrations

    def _opened(self, hidden: frozenset[str]) -> Workspace:
        library = Library.open(self.data, hidden, self.day())
        try:
            if self._hosted.nearest:
                library.searched_by(partial(self._hosted.nearest, library.path.name))
            return Workspace(library, self)
        except BaseException:  # models that cannot be told: its lease would outlive it
            library.close()
            raise

    # --- models ----------------------------------------------------------------------------------------------------

    @property
    def encoder(self) -> Embedder:
        """The encoder that was chosen; its weights load at the first use."""
        return self._hosted.encoder or self._of_encoder("encoder", lambda: owned(self._own_encoder, self._working))

    @property
    def chosen_encoder(self) -> Embedder:
        """The encoder for the library to come: the one that serves, but where the library kept an older default."""
        if self._encoder or not self.keeps_encoder:
            return self.encoder
        return owned(choice.encoder(self.chosen, self.registry), self._working)

    @property
    def encoder_maker(self) -> Callable[[], Embedder]:
        """What makes the encoder that serves in another process; it can be sent there."""
        return (
            partial(_itself, self._encoder) if self._encoder else partial(choice.encoder, self.serving, self.registry)
        )

    @property
    def emergency_encoder(self) -> Embedder:
        """multilingual-e5-small, whatever encoder was chosen: the likeness to emergencies was fitted on its vectors."""
        if self._encoder:
            return self._encoder
        from localmed.models.e5 import Uncentred

        if self.serving["encoder"] == "e5":
            return Uncentred(self.encoder)
        return Uncentred(self._fitted("e5"))

    @property
    def safety_encoder(self) -> Embedder:
        """MiniLM, whatever encoder was chosen: the likeness to wanting to die was fitted on its vectors."""
        if self._encoder or self.serving["encoder"] == "minilm":
            return self.encoder
        return self._fitted("minilm")

    @property
    def patient_encoder(self) -> Embedder:
        """The encoder for long work: at a model host it waits for everybody else."""
        return unhurried(self.encoder)

    @property
    def reranker(self) -> Reranker | None:
        """The reranker that was chosen; its weights load at the first use."""
        if "reranker" in self._stopped:
            return None
        if self._hosted.reranker:
            return self._hosted.reranker
        reranker = self._of_encoder("reranker", lambda: choice.reranker(self.serving, self.registry, self._own_encoder))
        return owned(reranker, self._working) if reranker else None

    @property
    def chat(self) -> CountingChat | None:
        """The chat model that was chosen, if one was; it loads at the first request."""
        if "chat" in self._stopped:
            return None
        return self._chat or self._hosted.chat or self._once("chat", self._own_chat)

    @property
    def planner(self) -> CountingChat | None:
        """The model tuned to plan sources (``localmed train``), if one was chosen; it serves that role alone."""
        name = NONE if "planner" in self._stopped else self.serving["planner"]
        return self._once(f"planner {name}", lambda: self.writer(name))

    def writer(self, name: str) -> LlamaChat | None:
        """The registered chat model or planner ``name``, in a child process of its own that the caller closes."""
        return choice.written_by(name, self.settings.chat, self.registry)

    @property
    def entailment(self) -> Entailment:
        """The judge of entailment that was chosen: a cross-encoder, the chat model, else none: likeness alone."""
        by_chat = self._chat_judges
        if self._stopped & {"entailment", "chat" if by_chat else "entailment"}:
            return self._once("likeness", self._likeness)
        return self._hosted.entailment or self._once(f"entailment {by_chat}", self._own_entailment)

    @property
    def _chat_judges(self) -> bool:
        """Whether the chat model judges: it was chosen to, or nobody was and it passed the self-test in comparing."""
        if self.serving["entailment"] != NONE or "entailment" in {**self.registry.registrations.roles, **self._uses}:
            return self.serving["entailment"] == CHAT
        return self._chat is None and self.chat is not None and COHERENCE.name not in self.unfit_roles

    @property
    def expand(self) -> Expand:
        """Spells abbreviations out."""
        from localmed.models import abbreviations

        return abbreviations.expand

    @property
    def _own_encoder(self) -> Embedder:
        return self._encoder or self._of_encoder("own encoder", lambda: choice.encoder(self.serving, self.registry))

    def _own_chat(self) -> CountingChat | None:
        return choice.chat(self.settings.chat, self.serving, self.registry)

    def _own_entailment(self) -> Entailment:
        judge = choice.entailment(self.serving, self.registry)
        if judge is None and (answering := choice.judging_chat(self.settings.chat, self.serving, self.registry)):
            return YesNo(answering, self.registry.model(self.serving["entailment"]).languages or ENGLISH)
        if judge is None and self.chat and self._chat_judges:
            return ChatEntailment(self.chat)
        return owned(judge, self._working) if judge else self._likeness()

    def _likeness(self) -> Entailment:
        return owned(
            LikenessOnly(self._hosted.encoder or self._own_encoder, partial(self._fitted, "e5")), self._working
        )

    def _fitted(self, name: str) -> Embedder:
        """The built-in encoder ``name``, on whose vectors rules were fitted: the host's, else one of this process."""
        make = partial(choice.encoder, {"encoder": name}, self.registry)
        return self._hosted.fitted.get(name) or self._once(f"fitted {name}", lambda: owned(make(), self._working))

    @property
    def _stopped(self) -> frozenset[str]:
        """The roles whose models a safety officer has stopped."""
        return stops.stopped(self.data, stops.MODEL)

    @property
    def _hosted(self) -> Hosted:
        """What a model host serves of what was chosen."""
        if self._encoder:
            return NOTHING
        return self._of_encoder("hosted", lambda: connect(self.data, self.settings.host, self._choices()))

    def _of_encoder(self, name: str, make: Callable[[], Made]) -> Made:
        """What goes with the encoder that serves now: another process may have brought the library to another one."""
        return self._once(f"{name} {self.serving['encoder']}", make)

    def _once(self, name: str, make: Callable[[], Made]) -> Made:
        """What ``make`` makes, the same for every thread."""
        if name not in self._made:
            with self._making:
                if name not in self._made:
                    self._made[name] = make()
        made: Made = self._made[name]
        return made

    def _forget_models(self) -> None:
        """Close what models hold; the next use makes them anew."""
        with self._making:
            made, self._made = self._made, {}
            self._models += 1
        for model in made.values():
            if isinstance(model, choice.Closing):
                model.close()

    # --- which models serve ----------------------------------------------------------------------------------------

    @property
    def registry(self) -> Registry:
        """The registered models."""
        return self._once("registry", lambda: Registry(model_folder(self.settings)))

    @property
    def serving(self) -> dict[str, str]:
        """What serves each role now: what was ``chosen``; by default a library keeps the built-in encoder it is of."""
        return self._chosen(generations.encoder(self.data))

    @property
    def keeps_encoder(self) -> bool:
        """Whether the library is served by the built-in encoder it is of, not the one that is the default by now."""
        return self.serving["encoder"] != self.chosen["encoder"]

    @property
    def chosen(self) -> dict[str, str]:
        """What ``localmed models use`` chose for each role, else the profile's (``chosen_models``)."""
        return self._chosen()

    def _chosen(self, library: str = "") -> dict[str, str]:
        record = self.registry.registrations
        uses = {role: name for role, name in {**record.roles, **self._uses}.items() if name != DEFAULT}
        return chosen_models(self.settings, uses, record.models, library)

    @property
    def chat_chosen(self) -> bool:
        """Whether ``localmed models use`` chose a chat model: then it serves the roles on every profile."""
        return self.registry.registrations.roles.get("chat", NONE) not in (NONE, DEFAULT)

    @property
    def unfit_roles(self) -> frozenset[str]:
        """The roles that rules serve beside the chat model: those in which it failed its self-test, all before it.

        A model that a caller brings is the caller's to test.
        """
        from localmed.agents import self_test
        from localmed.agents.role_table import ROLES
        from localmed.models.registry import tested

        questions = self_test.questions()
        failed = tested.unfit(self.registry.folder, self.chat.identity, questions) if self.chat else frozenset()
        return frozenset(() if self._chat else ROLES) if failed is None else failed

    def keep_unfit(self, roles: Collection[str], questions: Mapping[str, str] | None) -> None:
        """Note that the chat model that serves failed in ``roles`` of these ``questions``; None: trusted untested."""
        from localmed.models.registry import tested

        if self.chat:
            tested.keep(self.registry.folder, self.chat.identity, roles, questions)
            self._forget_models()

    def use(self, role: str, name: str, progress: Progress) -> None:
        """Let ``name`` (a registered model, one of ``BUILT_IN``, ``DEFAULT``) serve ``role`` from now on.

        Raise ``UsageError`` for one that cannot, ``ModelError`` for one that has changed or is not complete.
        """
        record = self.registry.registrations
        if not built_in(role, name):
            self.registry.fitting(role, name)
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
        self._forget_models()

    # --- the model host --------------------------------------------------------------------------------------------

    def serve_models(self, stop: int, ready: Callable[[HostStatus, Path], None]) -> None:
        """Be the model host of this data folder until something can be read from the file number ``stop``."""
        from localmed.library.dense import Nearest
        from localmed.models.host import hosting

        def made() -> Host:
            return hosting.made(self.settings, self.serving, self.registry, Nearest(self.data))

        hosting.serve(self.data, made, ready, stop)

    def host_status(self) -> HostStatus | None:
        """How the model host is, None if none runs; raise ``ModelError`` if it does not answer as it should."""
        from localmed.models.host import hosting

        return hosting.status(self.data, self.settings.host, self._choices())

    def _choices(self) -> dict[str, str]:
        return choice.choices(self.serving, self.registry.registrations, self.settings.chat)


def _itself(encoder: Embedder) -> Embedder:
    return encoder
