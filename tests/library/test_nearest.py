"""Dense search for other processes: any generation of the folder, the newest ones kept open, nothing made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import SearchFilter
from localmed.domain.errors import Damaged
from localmed.library import generations
from localmed.library.dense import OPEN, Nearest
from localmed.library.library import Library
from tests.fakes import ANY, HashedWords, import_into, write
from tests.words import pattern

VECTOR = HashedWords().encode(["adrenaline dose"], "query")[0]


def test_it_finds_what_the_library_finds(settings: Settings, corpus: Path) -> None:
    import_into(settings, write(corpus, {f"{drug}.txt": f"Dose of {drug}\n" for drug in ("adrenaline", "insulin")}))
    nearest = Nearest(settings.data)
    nearest.warm()
    with Library.open(settings.data) as library:
        for filters in (ANY, SearchFilter(collections=("other",)), SearchFilter(edition_from="2020")):
            expected = library.dense.search(VECTOR, 5, filters)
            assert nearest.search(library.path.name, VECTOR, 5, filters) == expected
        assert library.search_dense(VECTOR, 5, ANY) == nearest.search(library.path.name, VECTOR, 5, ANY)
        ids = [passage for passage, _, _ in library.search_dense(VECTOR, 5, ANY)]
        similar = library.sentence_similarities(VECTOR[None], ids)
        assert similar == nearest.similarities(library.path.name, VECTOR[None], ids)
        assert {*similar} == {*ids}
        library.searched_by(
            lambda vector, limit, filters: [("another", "process", 1.0)], lambda questions, ids: {"another": [1.0]}
        )
        assert library.search_dense(VECTOR, 5, ANY) == [("another", "process", 1.0)]
        assert library.sentence_similarities(VECTOR[None], ids) == {"another": [1.0]}


def test_generations_one_after_another(settings: Settings, corpus: Path) -> None:
    nearest = Nearest(settings.data)
    nearest.warm()  # nothing has been imported yet
    counts = []
    for number in range(OPEN + 1):
        import_into(settings, write(corpus, {f"{number}.txt": f"Dose number {number}\n"}))
        counts.append(len(nearest.search(generations.current(settings.data).name, VECTOR, 10, ANY)))
    assert counts == [1, 2, 3]
    assert len(nearest.search("0001", VECTOR, 10, ANY)) == 1


@pytest.mark.parametrize("name", ["0009", "", "..", "../generations/0001", "0001/passages.lance"])
def test_what_is_no_generation_is_refused_and_nothing_is_made(settings: Settings, corpus: Path, name: str) -> None:
    import_into(settings, write(corpus, {"a.txt": "Dose\n"}))
    with pytest.raises(Damaged, match=pattern("library.no_dense_index.what")):
        Nearest(settings.data).search(name, VECTOR, 10, ANY)
    assert not (generations.folder(settings.data) / "0009").exists()


def test_lancedb_is_imported_without_its_clients_of_a_network(tmp_path: Path) -> None:
    """They take as long to import as the rest of it; whoever wants them later finds them whole."""
    script = (
        "import sys; from pathlib import Path; from localmed.library.dense import REMOTE, DenseIndex\n"
        "DenseIndex(Path(sys.argv[1]), 8)\n"
        "assert 'lancedb' in sys.modules and f'{REMOTE}.models' in sys.modules\n"
        "assert not {REMOTE, f'{REMOTE}.api', f'{REMOTE}.rest'} & set(sys.modules)\n"
        "import lance_namespace_urllib3_client; lance_namespace_urllib3_client.ApiClient\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=60)
