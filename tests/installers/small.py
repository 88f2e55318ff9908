"""A bundle small enough for tests: one wheel, which stands in for localmed, in the place of a hundred."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from installers import bundle

# What the self-test and the installer ask of localmed, answered without a library.
MAIN = """
import json, pathlib, socket, sys
data = pathlib.Path(sys.argv[sys.argv.index("--data") + 1])
data.mkdir(parents=True, exist_ok=True)
with (data / "asked").open("a") as file:
    file.write(" ".join(sys.argv[3:5]) + "\\n")
if "canaries" in sys.argv:
    sys.exit(CANARIES)
if "ask" in sys.argv:
    try:
        socket.create_connection(("192.0.2.1", 80), 1)
        sys.exit("there is a network")
    except OSError:
        pass
    print(json.dumps({"status": STATUS, "receipts": {"sections": [1]}}))
"""


def wheel(
    folder: Path, version: str = "0.1.0", status: str = "sections", requires: str = "", canaries: int = 0
) -> Path:
    """A wheel called localmed, which answers with ``status`` and asks canary questions with that exit code."""
    path = folder / f"localmed-{version}-py3-none-any.whl"
    info = f"localmed-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: localmed\nVersion: {version}\nLicense: AGPL-3.0-or-later\n{requires}"
    files = {
        "localmed/__init__.py": "",
        "localmed/__main__.py": MAIN.replace("STATUS", repr(status)).replace("CANARIES", str(canaries)),
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD")))
    return path


def build(folder: Path, version: int, publisher: Path, **changes: Any) -> Path:
    """A bundle of one wheel, signed with the two keys of ``publisher``."""
    wheels = folder / f"wheels-{version}"
    wheels.mkdir(parents=True)
    wheel(wheels, **{name: changes.pop(name) for name in ("status", "requires", "canaries") if name in changes})
    out = folder / f"bundle-{version}"
    keys = [publisher / "a.pem", publisher / "b.pem"]
    bundle.build(replace(bundle.Plan(out, publisher / "root.json", version, keys, wheels=wheels), **changes))
    return out


def install(stick: Path, root: Path, *arguments: str, alone: bool = True) -> subprocess.CompletedProcess[str]:
    """Run ``install.sh`` in an empty network namespace, below ``root``."""
    root.mkdir(exist_ok=True)
    command = ["sh", str(stick / "install.sh"), "--root", str(root), *arguments]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LOCALMED_PYTHON": sys.executable, "LANG": "C.UTF-8"}
    return subprocess.run(
        [*(("unshare", "-rn", "--") if alone else ()), *command],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
        env=environment,
    )
