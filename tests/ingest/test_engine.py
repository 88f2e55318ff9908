"""An import by workers makes the generation that one process makes; workers within this process, without Ray."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from localmed import __version__
from localmed.config import LibrarySettings, Settings
from localmed.domain.errors import LibraryError
from localmed.domain.ports import encode_both
from localmed.ingest import engine
from localmed.ingest.engine import Engine
from localmed.ingest.pipeline import Importer, Report
from localmed.library.library import Library
from localmed.library.vectors import VectorCache
from localmed.site.site import Site
from tests.fakes import HashedWords, described

TEXT = "# {name}\n\n" + "\n\n".join(f"Section {n} of {{name}}: give {n} mg of drug{n} daily. " * 9 for n in range(9))


class Late:
    """``Workers`` that work when they are waited for, the last begun first: nothing may rest on who is faster."""

    def __init__(self, version: str = __version__) -> None:
        self.steps: list[str] = []
        self._version, self._tasks = version, list[Callable[[], None]]()

    def start(self, step: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        self.steps.append(step.__name__)
        envelopes: list[Any] = []
        self._tasks.append(lambda: envelopes.append(engine.run_enveloped(self._version, step, *arguments)))

        def result() -> Any:
            while not envelopes:
                self._tasks.pop()()
            return engine.open_envelope(envelopes[0])

        return result


@pytest.fixture
def forgotten() -> Iterator[None]:
    yield
    engine._parser().close()
    engine._parser.cache_clear()
    engine._ENCODERS.clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    for name in ("asthma", "gout", "sepsis", "copy"):
        (folder / f"{name}.md").write_text(TEXT.format(name=name.replace("copy", "gout")))
    (folder / "broken.pdf").write_text("%PDF-1.7\nno PDF")
    (folder / "faq.jsonl").write_text('{"id": "1", "title": "A", "text": "Rest for a week."}\nno JSON\n')
    return folder


def imported(data: Path, folder: Path, workers: Late | None, encoder: HashedWords | None = None) -> Importer:
    encoder = encoder or HashedWords()
    importer = Importer(Settings(data, library=LibrarySettings(batch=8)), described("ward"), encoder)
    if workers:
        importer.engine = Engine(workers, partial(HashedWords), 2)
    importer.run([folder])
    return importer


def report_lines(report: Report) -> list[Any]:
    """The report but for the order of its lines: what is refused is told before what is written later."""
    return [report.generation, report.counts, report.encoded, sorted(map(repr, report.lines))]


def content(data: Path) -> list[Any]:
    """All that a search could find: passages, documents, vectors."""
    with Library.open(data) as library:
        passages = sorted(library.lexical.all_passages(), key=lambda passage: passage.id)
        vectors = sorted(library.dense._table.to_arrow().select(["id", "vector"]).to_pylist(), key=itemgetter("id"))
        documents = library.catalogue.documents()
        return [passages, documents, vectors]


@pytest.mark.usefixtures("forgotten")
@pytest.mark.slow
def test_the_generation_and_the_report_are_the_same(tmp_path: Path, folder: Path) -> None:
    alone, by_workers, workers, here = tmp_path / "alone", tmp_path / "workers", Late(), HashedWords()
    one, other = imported(alone, folder, None), imported(by_workers, folder, workers, here)
    assert {line.outcome for line in other.report.lines} >= {"read", "quarantined"}
    assert workers.steps.count("parse") == 6
    assert workers.steps.count("encode") > 2
    assert not here.encoded, "everything was encoded by workers"
    for _ in range(2):
        assert report_lines(other.report) == report_lines(one.report)
        assert content(by_workers) == content(alone)
        (folder / "gout.md").write_text(TEXT.format(name="gout").replace("9 mg", "8 mg") + "\n\nAn end.")
        (folder / "sepsis.md").unlink(missing_ok=True)
        one, other = imported(alone, folder, None), imported(by_workers, folder, workers)


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize(("version", "encoder"), [("0.0.1", "1"), (__version__, "2")])
def test_a_worker_of_another_version_or_with_another_encoder_changes_nothing(
    tmp_path: Path, folder: Path, version: str, encoder: str
) -> None:
    with pytest.raises(LibraryError, match="another version"):
        imported(tmp_path / "data", folder, Late(version), HashedWords(encoder))
    with pytest.raises(LibraryError):
        Library.open(tmp_path / "data")


def test_a_failing_step_tells_no_text() -> None:
    envelope = engine.run_enveloped(__version__, _fails, "Mrs Zyxwvut")
    with pytest.raises(LibraryError, match="ValueError") as raised:
        engine.open_envelope(envelope)
    assert "Zyxwvut" not in str(raised.value)


def _fails(text: str) -> None:
    raise ValueError(text)


def test_the_encoder_that_serves_can_be_made_in_another_process(tmp_path: Path) -> None:
    with Site(Settings(tmp_path)) as site:
        elsewhere = pickle.loads(pickle.dumps(site.encoder_maker))()
        assert elsewhere.identity == site.encoder.identity
    with Site(Settings(tmp_path), HashedWords("7")) as site:
        assert pickle.loads(pickle.dumps(site.encoder_maker))().identity == site.encoder.identity


def test_a_text_that_is_being_encoded_is_not_sent_again(tmp_path: Path) -> None:
    sent: list[list[str]] = []

    def start(texts: list[str]) -> Callable[[], Any]:
        sent.append(texts)
        return lambda: encode_both(HashedWords(), texts, "passage")

    with closing(VectorCache(tmp_path / "begun", HashedWords(), start)) as cache:
        cache.begin(["a", "b"])
        cache.begin(["b", "c"])
        vectors = cache.encode(["c", "b"])
        assert sent == [["a", "b"], ["c"]]
        assert cache.encoded == 3
        cache.begin(["a", "c"])
        assert len(sent) == 2, "it is stored"
    with closing(VectorCache(tmp_path / "here", HashedWords())) as cache:
        assert (vectors == cache.encode(["c", "b"])).all()
