"""Building a bundle: everything that a hospital's machine needs, in one folder that ``upkeep/verifier.py`` verifies.

::

    BUNDLE/install.sh                 what is started; states the digests of installer.pyz and root.json
    BUNDLE/SHA256SUMS                 for whoever wants to compare by hand
    BUNDLE/root.json, manifest.json   whose keys sign; size and sha256 of every file of content/
    BUNDLE/content/                   bundle.json  requirements.txt  wheels/  install.sh  installer.pyz  root.json
                                      sbom.cdx.json  systemd/  desktop/  debian/  corpora/  models/  packs/  evidence/
"""

from __future__ import annotations

import json
import platform
import shutil
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zipfile import ZipFile

from installers import sbom, wheelhouse
from localmed.library.intact import sha256_of
from localmed.upkeep import signing
from localmed.upkeep.verifier import CONTENT, MANIFEST, ROOT

HERE = Path(__file__).parent
PROJECT = HERE.parent
PROGRAM = ("__init__.py", "upkeep/__init__.py", "upkeep/verifier.py")  # what the installer has of localmed


@dataclass(frozen=True)
class Plan:
    """What a bundle is to hold. ``wheels`` are taken as they are in the place of resolving and fetching."""

    out: Path
    root: Path
    version: int
    keys: Sequence[Path] = ()
    extras: Sequence[str] = ()
    models: Sequence[Path] = ()
    packs: Sequence[Path] = ()
    evidence: Sequence[Path] = ()
    debs: Sequence[Path] = ()
    wheels: Path | None = None
    lock: Path | None = None
    days: int = 365
    created: datetime | None = None  # now


def build(plan: Plan) -> int:
    """Make the bundle; return its number of files. Nothing is left of one that could not be made."""
    if plan.out.exists():
        raise SystemExit(f"{plan.out} is there already")
    content = plan.out / CONTENT
    content.mkdir(parents=True)
    try:
        _wheels(plan, content)
        _content(plan, content)
        (content / "bundle.json").write_text(json.dumps(describe(plan), indent=1) + "\n", "utf-8")
        wheels = sorted((content / "wheels").glob("*.whl"))
        debian = content / "debian" / "packages.txt"
        sbom.write(content / "sbom.cdx.json", project_version(), wheels, content / "models", debian)
        _installer(plan, content)
        keys = [signing.load_key(key) for key in plan.keys]
        count = signing.sign_folder(
            plan.out, plan.root, keys, "bundle", "localmed", plan.version, plan.days, plan.created
        )
        _sums(plan.out)
        return count
    except BaseException:
        shutil.rmtree(plan.out, ignore_errors=True)
        raise


def describe(plan: Plan) -> dict[str, object]:
    """What the bundle says of itself, for the installer."""
    return {
        "name": f"{project_version()}-{plan.version}",
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "machine": platform.machine(),
        "extras": list(plan.extras),
        "models": sorted(model.name for model in plan.models),
        "packs": sorted(pack.name for pack in plan.packs),
    }


def project_version() -> str:
    """localmed's version."""
    return str(tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def _wheels(plan: Plan, content: Path) -> None:
    if plan.wheels:
        shutil.copytree(plan.wheels, content / "wheels")
    else:
        locked = plan.lock or content / "locked.txt"
        if not plan.lock:
            wheelhouse.lock(plan.extras, locked)
        wheelhouse.fetch(locked, content / "wheels")
    (content / "requirements.txt").write_text(wheelhouse.requirements(content / "wheels"), "utf-8")


def _content(plan: Plan, content: Path) -> None:
    for name in ("systemd", "desktop", "debian"):
        shutil.copytree(HERE / name, content / name)
    (content / "corpora").mkdir()
    for manifest in sorted((PROJECT / "corpora").glob("*.toml")):
        shutil.copyfile(manifest, content / "corpora" / manifest.name)
    shutil.copytree(PROJECT / "corpora" / "starter", content / "corpora" / "starter")
    parts = {"models": plan.models, "packs": plan.packs, "evidence": plan.evidence, "debian": plan.debs}
    for kind, sources in parts.items():
        (content / kind).mkdir(exist_ok=True)
        for source in sources:
            copy = shutil.copytree if source.is_dir() else shutil.copyfile
            copy(source, content / kind / source.name)
    for model in plan.models:
        _check_model(model)


def _check_model(model: Path) -> None:
    """Raise ``SystemExit`` for a file with another hash than the registry's manifest of that name states."""
    manifest = PROJECT / "models" / f"{model.stem if model.is_file() else model.name}.toml"
    if not manifest.exists():
        raise SystemExit(f"{model.name} is no model of models/: name the folder or file after its manifest")
    for row in tomllib.loads(manifest.read_text("utf-8")).get("files", ()):
        for name in str(row.get("name", "")).split(" | "):
            file = model / name if model.is_dir() else model
            if row.get("sha256") and file.exists() and sha256_of(file) != row["sha256"]:
                raise SystemExit(f"{file} has another hash than {manifest.name} states")


def _installer(plan: Plan, content: Path) -> None:
    """The installer's program with localmed's verifier in it, and the script that states its digest and the root's."""
    with ZipFile(content / "installer.pyz", "w") as archive:
        for path in sorted((HERE / "installer").glob("*.*")):
            archive.write(path, path.name)
        for name in PROGRAM:
            archive.write(PROJECT / "localmed" / name, f"localmed/{name}")
    shutil.copyfile(plan.root, content / ROOT)
    text = (HERE / "install.sh").read_text("utf-8")
    for name, value in {
        "INSTALLER": sha256_of(content / "installer.pyz"),
        "ROOT": sha256_of(plan.root),
        "PYTHON": f"{sys.version_info.major}.{sys.version_info.minor}",
    }.items():
        text = text.replace(f"@{name}@", value)
    (content / "install.sh").write_text(text, "utf-8")
    (content / "install.sh").chmod(0o755)
    shutil.copy2(content / "install.sh", plan.out)


def _sums(out: Path) -> None:
    listed = (path for path in sorted(out.rglob("*")) if path.is_file() and path != out / MANIFEST)  # signed later too
    rows = (f"{sha256_of(path)}  {path.relative_to(out).as_posix()}" for path in listed)
    text = "\n".join(rows) + "\n"
    (out / "SHA256SUMS").write_text(text, "utf-8")
