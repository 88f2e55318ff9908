"""Import throughput, what adding one PDF costs, and the memory of an import."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from localmed.config import LibrarySettings, Settings
from localmed.domain import Collection
from localmed.ingest.manifest import Manifest
from localmed.models.e5 import E5
from localmed.site import changes, importing, lookups
from tests.benchmarks.common import Place, Row, library, met, peak_memory
from tests.benchmarks.known_item import MEDQUAD
from tests.fakes import opened

BATCH = LibrarySettings().batch  # the pipeline's, so that both sides sort alike
PDF = "pdf_en/cdc_infection_prevention_outpatient_2016.pdf"
SMALL = 530  # MedQuAD files that make about 3,000 passages


def throughput(place: Place, data: Path, every: int) -> list[Row]:
    """Import MedQuAD (each ``every``-th file) in a process of its own, then encode its passages alone; once."""
    code = "import sys; from tests.benchmarks.importing import import_medquad; import_medquad(sys.argv[1], sys.argv[2])"
    command = [sys.executable, "-c", code, str(thinned(place, every)), str(data)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, memory = (float(figure) for figure in done.stdout.split())
    with opened(Settings(data)) as session:
        texts = [passage.in_context for passage in library(session).lexical.all_passages()]
    encoder = E5()
    encoder.encode(texts[:64], "passage")
    began = time.perf_counter()
    for start in range(0, len(texts), BATCH):
        encoder.encode(texts[start : start + BATCH], "passage")
    alone = time.perf_counter() - began
    share = alone / seconds
    part = "" if every == 1 else f"every {every}th file, "
    how = f"{part}{len(texts):,} passages, once: import {seconds:.0f} s, encoding alone {alone:.0f} s"
    return [
        Row("import of MedQuAD against encoding alone", ">= 85 %", f"{share:.0%}", met(share >= 0.85), how),
        Row("peak memory importing MedQuAD", "<= 2 GiB", f"{memory / 2**30:.2f} GiB", met(memory <= 2 * 2**30),
            "the importing process; its parser child has a limit of its own"),
    ]  # fmt: skip


def thinned(place: Place, every: int) -> Path:
    """MedQuAD's folder, or a copy of each ``every``-th file."""
    if every == 1:
        return place.medquad()
    folder = place.work / f"medquad-every-{every}"
    folder.mkdir(exist_ok=True)
    for file in sorted(place.medquad().rglob("*.xml"))[::every]:
        shutil.copy(file, folder / f"{file.parent.name}-{file.name}")
    return folder


def import_medquad(source: str, data: str) -> None:
    """Import and print the seconds and the peak memory (run in a fresh process)."""
    began = time.perf_counter()
    with opened(Settings(Path(data))) as session:
        importing.import_paths(session, [Path(source)], MEDQUAD)
    print(time.perf_counter() - began, peak_memory())


def small_library(place: Place) -> Path:
    """A library of about 3,000 of MedQuAD's passages."""
    data, folder = place.work / "small", place.work / "small-source"
    folder.mkdir()
    for file in sorted(place.medquad().rglob("*.xml"))[:: 5497 // SMALL]:
        shutil.copy(file, folder / f"{file.parent.name}-{file.name}")
    with opened(Settings(data)) as session:
        importing.import_paths(session, [folder], MEDQUAD)
    return data


def adding_one(place: Place, large: Path) -> list[Row]:
    """Seconds to import one 44-page PDF into a large and a small library, vectors encoded anew each time."""
    pdf = place.data / PDF
    manifest = Manifest(Collection("cdc", "CDC", 10, "en"))
    medians, sizes = {}, {}
    libraries = {"small": small_library(place), "large": large}
    encoder = E5()
    encoder.encode(["warm"], "query")
    times: dict[str, list[float]] = {name: [] for name in libraries}
    for turn in range(6):  # the first round warms the file cache
        for name, data in libraries.items():
            shutil.rmtree(data / "vectors", ignore_errors=True)
            with opened(Settings(data), encoder) as session:
                sizes[name] = library(session).manifest.passages
                began = time.perf_counter()
                importing.import_paths(session, [pdf], manifest)
                times[name].append(time.perf_counter() - began)
                changes.remove(session, lookups.documents(session, "cdc"))
        if turn == 0:
            times = {name: [] for name in libraries}
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    ratio = medians["large"] / medians["small"]
    how = f"libraries of {sizes['large']:,} and {sizes['small']:,} passages, median of 5, no vector cached"
    measured = f"{ratio:.2f}x ({medians['large']:.2f} against {medians['small']:.2f} s)"
    name = "adding one 44-page PDF, large library against small"
    return [Row(name, "<= 1.5x", measured, met(ratio <= 1.5), how)]
