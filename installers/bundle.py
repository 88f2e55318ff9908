"""Building a bundle: everything that a hospital's machine needs, in one folder under TUF's metadata.

::

    BUNDLE/install.sh            what is started; states the digests of the two files that verify the rest
    BUNDLE/SHA256SUMS            for whoever wants to compare by hand
    BUNDLE/metadata/             TUF: roots, timestamp, snapshot, targets
    BUNDLE/targets/              bundle.json  requirements.txt  wheels/  installer.pyz  sbom.cdx.json  systemd/
                                 desktop/  debian/  corpora/  models/  packs/  evidence/
"""

from __future__ import annotations

import json
import platform
import shutil
import sys
import tomllib
import zipapp
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from installers import sbom, wheelhouse
from localmed.library.intact import sha256_of
from localmed.upkeep import signing

HERE = Path(__file__).parent
ROOT = HERE.parent


@dataclass(frozen=True)
class Plan:
    """What a bundle is to hold. ``wheels`` are taken as they are in the place of resolving and fetching."""

    out: Path
    roots: Sequence[Path]
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
    created: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))


def build(plan: Plan) -> int:
    """Make the bundle; return its number of files. Nothing is left of one that could not be made."""
    if plan.out.exists():
        raise SystemExit(f"{plan.out} is there already")
    targets = plan.out / signing.TARGETS
    targets.mkdir(parents=True)
    try:
        _wheels(plan, targets)
        _content(plan, targets)
        zipapp.create_archive(
            HERE / "installer", targets / "installer.pyz", filter=lambda path: path.suffix in (".py", ".toml")
        )
        (targets / "bundle.json").write_text(json.dumps(describe(plan), indent=1) + "\n", "utf-8")
        wheels = sorted((targets / "wheels").glob("*.whl"))
        sbom.write(
            targets / "sbom.cdx.json",
            project_version(),
            wheels,
            targets / "models",
            targets / "debian" / "packages.txt",
        )
        _install_script(plan, targets)
        count = signing.sign_folder(
            plan.out,
            plan.roots,
            [signing.load_key(key) for key in plan.keys],
            plan.version,
            plan.created + timedelta(days=plan.days),
        )
        _sums(plan.out)
        return count
    except BaseException:
        shutil.rmtree(plan.out, ignore_errors=True)
        raise


def describe(plan: Plan) -> dict[str, object]:
    """What the bundle says of itself, for the installer."""
    return {
        "format": 1,
        "name": f"{project_version()}-{plan.version}",
        "created": plan.created.isoformat(),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "machine": platform.machine(),
        "extras": list(plan.extras),
        "models": sorted(model.name for model in plan.models),
        "packs": sorted(pack.name for pack in plan.packs),
    }


def project_version() -> str:
    """localmed's version."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def _wheels(plan: Plan, targets: Path) -> None:
    if plan.wheels:
        shutil.copytree(plan.wheels, targets / "wheels")
    else:
        locked = plan.lock or targets / "locked.txt"
        if not plan.lock:
            wheelhouse.lock(plan.extras, locked)
        wheelhouse.fetch(locked, targets / "wheels")
    (targets / "requirements.txt").write_text(wheelhouse.requirements(targets / "wheels"), "utf-8")


def _content(plan: Plan, targets: Path) -> None:
    for name in ("systemd", "desktop", "debian"):
        shutil.copytree(HERE / name, targets / name)
    (targets / "corpora").mkdir()
    for manifest in sorted((ROOT / "corpora").glob("*.toml")):
        shutil.copyfile(manifest, targets / "corpora" / manifest.name)
    shutil.copytree(ROOT / "corpora" / "starter", targets / "corpora" / "starter")
    for kind, sources in (("models", plan.models), ("packs", plan.packs)):
        for source in sources:
            _copied(source, targets / kind / source.name)
    for kind, sources in (("evidence", plan.evidence), ("debian", plan.debs)):
        for source in sources:
            _copied(source, targets / kind / source.name)
    for model in plan.models:
        _check_model(model)


def _copied(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)


def _check_model(model: Path) -> None:
    """Raise ``SystemExit`` for a file with another hash than the registry's manifest of that name states."""
    manifest = ROOT / "models" / f"{model.stem if model.is_file() else model.name}.toml"
    if not manifest.exists():
        raise SystemExit(f"{model.name} is no model of models/: name the folder or file after its manifest")
    for row in tomllib.loads(manifest.read_text("utf-8")).get("files", ()):
        for name in str(row.get("name", "")).split(" | "):
            file = model / name if model.is_dir() else model
            if row.get("sha256") and file.exists() and sha256_of(file) != row["sha256"]:
                raise SystemExit(f"{file} has another hash than {manifest.name} states")


def _install_script(plan: Plan, targets: Path) -> None:
    first = min(plan.roots, key=lambda path: signing.read_root(path).signed.version)
    values = {
        "INSTALLER": sha256_of(targets / "installer.pyz"),
        "ROOT": sha256_of(first),
        "ROOT_VERSION": str(signing.read_root(first).signed.version),
        "PYTHON": f"{sys.version_info.major}.{sys.version_info.minor}",
    }
    text = (HERE / "install.sh").read_text("utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    path = plan.out / "install.sh"
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def _sums(out: Path) -> None:
    listed = (path for path in sorted(out.rglob("*")) if path.is_file() and path.parent.name != signing.METADATA)
    rows = (f"{sha256_of(path)}  {path.relative_to(out).as_posix()}" for path in listed)
    text = "\n".join(rows) + "\n"
    (out / "SHA256SUMS").write_text(text, "utf-8")
