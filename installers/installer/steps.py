"""Installing: verify, copy, preflight, build the environment, try it without a network, switch. Or nothing at all.

A library that is there is asked its canary questions by the new version before that serves.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import preflight
from place import USER, Place, replace

from localmed.upkeep import verifier
from localmed.upkeep.verifier import Manifest, Refused, Trust

SECONDS = 1800  # for one step of pip or of the self-test on a slow machine
LOST = 7  # the exit code of a command that lost canary questions
QUESTION = "What is the blood pressure target for most adults with hypertension?"
Tell = Callable[..., None]


def install(bundle: Path, anchor: Path, place: Place, tell: Tell) -> str:
    """Install ``bundle`` and let it serve; return the version's name. Raise ``Refused`` with nothing switched."""
    trust = Trust.of((place.trust if place.trust.exists() else anchor).read_bytes())
    manifest = verifier.verify(bundle, "bundle", trust)
    tell("verified", count=len(manifest.files), day=manifest.expires.date().isoformat())
    described = json.loads(manifest.read("bundle.json"))
    preflight.examine(described, manifest.size, place.prefix, tell)
    place.versions.mkdir(parents=True, exist_ok=True)
    staging = place.prefix / ".staging"
    shutil.rmtree(staging, ignore_errors=True)
    try:
        _copy_verified(manifest, staging, tell)
        name = str(described["name"])
        _environment(staging, place.versions / name, place, tell)
        try:
            _self_test(place.versions / name, tell)
            _ask_canaries(place, name, tell)
        except Refused:
            if place.served() != name:
                shutil.rmtree(place.versions / name, ignore_errors=True)
            raise
        _finish(staging, trust.after(manifest), name, place, tell)
        return name
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if place.versions.exists() and not any(place.versions.iterdir()):
            place.remove(purge=False)  # a first installation that failed leaves nothing


def _copy_verified(manifest: Manifest, staging: Path, tell: Tell) -> None:
    for number, name in enumerate(sorted(manifest.files), 1):
        try:
            manifest.copy(name, staging / name)
        except OSError as error:
            raise Refused("uncopied", name=name, reason=error.strerror or type(error).__name__) from None
        if number % 50 == 0 or number == len(manifest.files):
            tell("copied", done=number, total=len(manifest.files))


def _environment(staging: Path, target: Path, place: Place, tell: Tell) -> None:
    """A virtual environment from the wheels of ``staging`` alone, each by its hash."""
    if target.exists() and place.served() == target.name:
        raise Refused("serves", name=target.name)
    shutil.rmtree(target, ignore_errors=True)
    tell("environment", name=target.name)
    try:
        _run([sys.executable, "-I", "-m", "venv", str(target)], "environment_failed")
        python = [str(target / "bin" / "python"), "-I", "-m"]
        pip = "pip install --no-index --require-hashes --no-deps --only-binary :all: --no-cache-dir --quiet"
        wheels = ["--find-links", str(staging / "wheels"), "--requirement", str(staging / "requirements.txt")]
        _run([*python, *pip.split(), "--disable-pip-version-check", *wheels], "environment_failed")
        _run([*python, "pip", "check"], "environment_failed")
        share = target / "share" / "localmed"
        for name in ("bundle.json", "sbom.cdx.json", "requirements.txt", "debian", "evidence"):
            _copy(staging / name, share / name)
        packages = next((target / "lib").glob("python3.*")) / "site-packages"
        _copy(staging / "corpora", packages / "corpora")
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    elif source.exists():
        shutil.copyfile(source, target)


def _self_test(version: Path, tell: Tell) -> None:
    """Import a guideline and answer from it, with an empty network; raise ``Refused`` for anything but an answer."""
    tell("self_test")
    alone = preflight.namespace()
    if not alone:
        raise Refused("no_namespace")
    corpora = next((version / "lib").glob("python3.*")) / "site-packages" / "corpora"
    data = version / "self-test"
    localmed = [*alone, str(version / "bin" / "python"), "-P", "-m", "localmed", "--data", str(data)]
    manifest = str(corpora / "starter-guidelines.toml")
    try:
        _run([*localmed, "import", str(corpora / "starter" / "guidelines"), "-c", "starter-guidelines",
              "--manifest", manifest], "self_test_failed")  # fmt: skip
        answer = json.loads(_run([*localmed, "ask", QUESTION, "--json"], "self_test_failed"))
        if answer.get("status") != "sections" or not answer["receipts"]["sections"]:
            raise Refused("self_test_failed", reason=str(answer.get("status")))
    except ValueError:
        raise Refused("self_test_failed", reason="JSON") from None
    finally:
        shutil.rmtree(data, ignore_errors=True)


def _finish(staging: Path, trust: Trust, name: str, place: Place, tell: Tell) -> None:
    """Units, models, trust; then the switch, last."""
    values = {"PREFIX": str(place.prefix), "DATA": str(place.data), "USER": USER}
    place.write_outside(staging, values)
    if not place.trial:
        system(["systemd-sysusers"])
    place.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    _take_over(staging, place, name, tell)
    if not place.trial:
        owner = shutil.which("chown")
        if owner:
            system([owner, "-R", f"{USER}:{USER}", str(place.data)])
    place.installer.mkdir(exist_ok=True)
    for file in ("install.sh", "installer.pyz", "root.json"):
        shutil.copyfile(staging / file, place.installer / file)
    (place.installer / "install.sh").chmod(0o755)
    replace(place.trust, trust.kept(), 0o644)
    place.switch(name)
    if not place.trial:
        system(["systemctl", "daemon-reload"])
        system(["systemctl", "enable", "--now", "localmed.service", "localmed-refresh.timer"])
    tell("installed", name=name, prefix=str(place.prefix), data=str(place.data))


def _ask_canaries(place: Place, name: str, tell: Tell) -> None:
    """Raise ``Refused`` where the new version loses a canary question; a library that cannot be asked stops nothing."""
    if not (place.data / "current").is_symlink():
        return
    tell("canaries")
    localmed = [str(place.versions / name / "bin" / "python"), "-P", "-m", "localmed", "--data", str(place.data)]
    if _done([*preflight.namespace(), *localmed, "canaries"], "data_failed").returncode == LOST:
        raise Refused("canaries_lost", name=name)


def _take_over(staging: Path, place: Place, name: str, tell: Tell) -> None:
    """The bundle's root, models and packs into the data folder; a pack taken in before is not a fault."""
    localmed = [str(place.versions / name / "bin" / "python"), "-P", "-m", "localmed", "--data", str(place.data)]
    _run([*localmed, "pack", "trust", str(staging / "root.json"), "--yes"], "data_failed")
    for model in sorted((staging / "models").glob("*")):
        tell("model", name=model.name)
        _run([*localmed, "models", "add", str(model), "--as", model.name], "data_failed")
    for pack in sorted((staging / "packs").glob("*")):
        tell("pack", name=pack.name)
        _run([*localmed, "pack", "import", str(pack)], "data_failed")


def rollback(place: Place, tell: Tell) -> str:
    """Let the version before serve again, if it passes the self-test; return its name."""
    name = place.previous.resolve().name if place.previous.is_symlink() else ""
    if not name or not (place.versions / name / "bin" / "python").exists():
        raise Refused("no_previous")
    _self_test(place.versions / name, tell)
    place.switch(name)
    if not place.trial:
        system(["systemctl", "restart", "localmed.service"])
    tell("rolled_back", name=name)
    return name


def uninstall(place: Place, purge: bool, tell: Tell) -> None:
    """Take everything away but, unless ``purge``, the data. Raise ``Refused`` while anything of it runs."""
    if not place.versions.exists():
        raise Refused("not_installed", folder=str(place.prefix))
    if not place.trial:
        system(
            ["systemctl", "disable", "--now", "localmed.service", "localmed-refresh.timer", "localmed-refresh.service"]
        )
    if running := sorted(place.running()):
        raise Refused("running", processes=" ".join(map(str, running)))
    for name in place.remove(purge):
        tell("changed_kept", file=name, level="warning")
    if not place.trial:
        system(["systemctl", "daemon-reload"])
        if purge:
            system(["userdel", USER])
    tell("purged" if purge else "removed", data=str(place.data))


def _run(command: Sequence[str], code: str) -> str:
    """Run ``command`` to its end and return what it printed; raise ``Refused`` with its last line otherwise."""
    done = _done(command, code)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [str(done.returncode)]
        raise Refused(code, reason=lines[-1][:300])
    return done.stdout


def _done(command: Sequence[str], code: str) -> subprocess.CompletedProcess[str]:
    """Run ``command`` to its end, with nothing of this environment that would lead it elsewhere."""
    left_out = ("PIP_", "PYTHON", "LOCALMED_", "VIRTUAL_ENV", "XDG_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    environment |= {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "LOCALMED_LANGUAGE": "en"}
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(code, reason=type(error).__name__) from None


def system(command: Sequence[str]) -> None:
    """Run a command of the machine's, if it has it: a container has no systemd."""
    if shutil.which(command[0]) and (command[0] != "systemctl" or Path("/run/systemd/system").exists()):
        subprocess.run(command, check=False, timeout=SECONDS, capture_output=True)
