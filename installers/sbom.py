"""The software bill of materials of a bundle: CycloneDX 1.6, every wheel and model with its sha256."""

from __future__ import annotations

from collections.abc import Iterable
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from localmed.library.intact import sha256_of


def write(out: Path, version: str, wheels: Iterable[Path], models: Path, debian: Path) -> int:
    """Write the bill to ``out``; return how many components it names."""
    bom = Bom()
    bom.metadata.component = Component(
        name="localmed", version=version, type=ComponentType.APPLICATION, bom_ref="localmed"
    )
    for wheel in wheels:
        bom.components.add(_of_wheel(wheel))
    for file in sorted(path for path in models.rglob("*") if path.is_file()) if models.exists() else ():
        name = file.relative_to(models).as_posix()
        bom.components.add(
            Component(
                name=name, type=ComponentType.MACHINE_LEARNING_MODEL, bom_ref=f"model:{name}", hashes=[_hash(file)]
            )
        )
    for package in packages(debian):
        reference = PackageURL("deb", "debian", package)
        bom.components.add(Component(name=package, type=ComponentType.LIBRARY, purl=reference, bom_ref=str(reference)))
    bom.register_dependency(bom.metadata.component, bom.components)  # all are its own; which needs which, pip knows
    out.write_text(JsonV1Dot6(bom).output_as_string(indent=1), "utf-8")
    return len(bom.components)


def packages(debian: Path) -> list[str]:
    """The names in a list of Debian packages."""
    lines = (line.partition("#")[0].strip() for line in debian.read_text("utf-8").splitlines())
    return [line for line in lines if line]


def described(wheel: Path) -> tuple[str, str, str]:
    """Name, version and licence of a wheel, as its metadata says."""
    with ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        headers = HeaderParser().parsestr(archive.read(name).decode("utf-8", "replace"))
    licence = headers.get("License-Expression") or headers.get("License") or ""
    if not licence:
        classifiers = headers.get_all("Classifier") or []
        licence = next((line.rpartition(":: ")[2] for line in classifiers if line.startswith("License ::")), "")
    return headers["Name"], headers["Version"], licence.strip().splitlines()[0][:200] if licence.strip() else ""


def _of_wheel(wheel: Path) -> Component:
    name, version, licence = described(wheel)
    reference = PackageURL("pypi", None, name.lower().replace("_", "-"), version)
    licences = [DisjunctiveLicense(name=licence)] if licence else []
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        purl=reference,
        bom_ref=str(reference),
        licenses=licences,
        hashes=[_hash(wheel)],
        properties=[Property(name="localmed:file", value=wheel.name)],
    )


def _hash(path: Path) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=sha256_of(path))
