"""The offline bundle of the starter, built here and installed in an empty network: seconds, size, and fetches.

    python -m tests.benchmarks.bundle

Building fetches from the package index that pip is set to. The installation runs under strace in a network namespace
without any network, below a folder; a fetch is a call on a socket that reaches for anything but this machine. Minutes
depend on what else the machine does: processor seconds stand beside them. Also the exposure of the units, by systemd.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from installers import bundle, wheelhouse
from localmed.upkeep import egress
from tests.benchmarks.common import Place, Row, work_folder
from tests.installers.test_services import MOST, filled
from tests.site.publishing import key_pair


def run(place: Place) -> list[Row]:
    """Build, install, count."""
    folder = place.work / "bundle"
    folder.mkdir(parents=True)
    key_pair(folder)
    keys = [folder / "a.pem", folder / "b.pem"]
    began = time.monotonic()
    wheelhouse.lock([], folder / "lock.txt")
    bundle.build(bundle.Plan(folder / "out", folder / "root.json", 1, keys=keys, lock=folder / "lock.txt"))
    built = time.monotonic() - began
    return [_built(folder / "out", built), *_installed(folder), *_exposures(folder)]


def _built(out: Path, seconds: float) -> Row:
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    wheels = len(list((out / "content" / "wheels").glob("*.whl")))
    measured = f"{size / 2**20:.0f} MiB, {wheels} wheels, {seconds / 60:.1f} minutes"
    return Row("bundle of the starter, resolved, fetched by hash and signed", "", measured, "-", "no extras")


def _installed(folder: Path) -> list[Row]:
    trace, python = folder / "trace", os.path.realpath(sys.executable)
    command = ["sh", str(folder / "out" / "install.sh"), "--root", str(folder / "machine")]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [*egress.namespace_command(), *egress.traced_command(trace), *command],
        env={"PATH": os.environ["PATH"], "LOCALMED_PYTHON": python, "LANG": "C.UTF-8"},
        check=False,
    )
    after, minutes = resource.getrusage(resource.RUSAGE_CHILDREN), (time.monotonic() - began) / 60
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    fetches = sum(call.beyond for call in egress.parse_calls(trace.read_text().splitlines()))
    works = done.returncode == 0
    measured = f"{'works' if works else 'failed'}: {minutes:.1f} minutes, {spent:.0f} s of processor time"
    how = "empty network namespace; verified, environment of the wheels, self-test with an import and an answer"
    return [
        Row("installation from the bundle to its first answer", "works", measured, "yes" if works else "no", how),
        Row("fetches during it (calls beyond the machine)", "0", str(fetches), "no" if fetches else "yes", "strace"),
    ]


def _exposures(folder: Path) -> list[Row]:
    rows = []
    for unit in MOST:
        (folder / unit).write_text(filled(unit))
        command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(folder / unit)]
        printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        exposure = re.search(r"exposure level for \S+: ([\d.]+)", printed)
        rows.append(Row(f"exposure of {unit}", "", exposure[1] if exposure else "?", "-", "systemd-analyze, of 10"))
    return rows


def main() -> None:
    """Print the rows."""
    for row in run(Place(Path(), work_folder())):
        print(row)


if __name__ == "__main__":
    main()
