"""The wheels of a bundle, pinned by hash: resolved once, fetched against those hashes, what has no wheel compiled.

``pip install --dry-run --report`` names every package with the hash that the index states; ``pip wheel
--require-hashes`` takes exactly these and builds what is a source archive (llama-cpp-python: five minutes, or from
pip's cache). The hospital's requirements name the hashes of the wheels that came out, built ones included.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from installers.sbom import described
from localmed.library.intact import sha256_of

SECONDS = 3600  # for one call of pip
ROOT = Path(__file__).parent.parent


def pip(*arguments: str) -> None:
    """Run pip of this Python; raise ``SystemExit`` with what it said."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise SystemExit(f"pip {arguments[0]} failed:\n{(done.stderr or done.stdout)[-3000:]}")


def lock(extras: Sequence[str], out: Path) -> int:
    """Write every package that localmed with ``extras`` needs to ``out``, each with its hash; return how many."""
    with tempfile.TemporaryDirectory() as folder:
        source, report = copied_source(Path(folder) / "source"), Path(folder) / "report.json"
        named = f"{source}[{','.join(extras)}]" if extras else str(source)
        pip("install", "--dry-run", "--ignore-installed", "--quiet", "--report", str(report), named)
        rows = json.loads(report.read_text("utf-8"))["install"]
    lines = []
    for row in rows:
        hashes = row["download_info"].get("archive_info", {}).get("hashes", {})
        if "sha256" in hashes:
            lines.append(f"{row['metadata']['name']}=={row['metadata']['version']} --hash=sha256:{hashes['sha256']}")
        elif row["metadata"]["name"] != "localmed":
            raise SystemExit(f"{row['metadata']['name']} has no sha256 at its index")
    out.write_text("\n".join(sorted(lines, key=str.lower)) + "\n", "utf-8")
    return len(lines)


def fetch(locked: Path, wheels: Path) -> None:
    """Fetch and build what ``locked`` names into ``wheels``, and localmed itself."""
    wheels.mkdir(parents=True, exist_ok=True)
    pip("wheel", "--quiet", "--no-deps", "--require-hashes", "--wheel-dir", str(wheels), "--requirement", str(locked))
    with tempfile.TemporaryDirectory() as folder:
        source = copied_source(Path(folder) / "source")
        pip("wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(source))


def requirements(wheels: Path) -> str:
    """What the hospital's pip is given: every wheel by name, version and hash."""
    rows = []
    for wheel in sorted(wheels.glob("*.whl")):
        name, version, _ = described(wheel)
        rows.append(f"{name}=={version} --hash=sha256:{sha256_of(wheel)}")
    return "\n".join(rows) + "\n"


def copied_source(target: Path) -> Path:
    """The project's own files without what builds leave in its folder, which a wheel would take along."""
    git = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(git, capture_output=True, check=False, timeout=60)
    if listed.returncode == 0:
        names = [name for name in os.fsdecode(listed.stdout).split("\0") if name]
    else:
        left_out = (".venv", "build", "demo", ".git")
        names = [
            str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.relative_to(ROOT).parts[0] not in left_out
        ]
    for name in names:
        source = ROOT / name
        if source.is_symlink() or source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)
    return target
