"""A directory for the tests: OpenLDAP's slapd (apt-get install slapd) on the loopback, with TLS and a few people."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from localmed.config import LdapSettings

SLAPD = shutil.which("slapd") or "/usr/sbin/slapd"
BASE = "dc=hospital,dc=example"
ROOT, ROOT_PASSWORD = f"cn=lookup,{BASE}", "lookup secret"
PASSWORD = "a directory's password"
PEOPLE = {"wu": "Wu", "li": "Li", "star*": "Star", "li)(uid=*": "Odd"}
GROUPS = {"Library Team": ("wu",), "Ward 3": ("wu", "li"), "Nobody": ("star*",)}
ROLES = (f"CN=Library Team, ou=groups,{BASE} -> librarian", f"cn=Ward 3,ou=groups,{BASE} -> reader ward3 icu")
STARTED = 20.0  # seconds that it may take


@dataclass
class Directory:
    """A running directory: its settings (over ``ldaps``) and its process."""

    settings: LdapSettings
    port: int
    process: subprocess.Popen[bytes]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _escaped(name: str) -> str:
    return "".join(f"\\{ord(letter):02x}" if letter in "*()=," else letter for letter in name)


def people() -> str:
    """The directory as LDIF."""
    lines = [f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\no: Hospital\ndc: hospital\n"]
    lines += [f"dn: ou={unit},{BASE}\nobjectClass: organizationalUnit\nou: {unit}\n" for unit in ("people", "groups")]
    for uid, surname in PEOPLE.items():
        lines.append(
            f"dn: uid={_escaped(uid)},ou=people,{BASE}\nobjectClass: inetOrgPerson\nuid: {uid}\ncn: {surname}\n"
            f"sn: {surname}\nuserPassword: {PASSWORD}\n"
        )
    for group, members in GROUPS.items():
        named = "".join(f"member: uid={_escaped(uid)},ou=people,{BASE}\n" for uid in members)
        lines.append(f"dn: cn={group},ou=groups,{BASE}\nobjectClass: groupOfNames\ncn: {group}\n{named}")
    return "\n".join(lines)


def certificate(folder: Path, name: str = "localhost") -> tuple[Path, Path]:
    """A certificate of ``name`` signed by itself, and its key."""
    made, key = folder / f"{name}.pem", folder / f"{name}.key"
    kind = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    names = ("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-out", made, "-keyout", key)
    subprocess.run(("openssl", "req", *kind, *names), check=True, capture_output=True)
    return made, key


@contextmanager
def running(folder: Path) -> Iterator[Directory]:
    """The directory in ``folder``, until the block ends."""
    (folder / "db").mkdir()
    made, key = certificate(folder)
    schemas = "\n".join(f"include /etc/ldap/schema/{name}.schema" for name in ("core", "cosine", "inetorgperson"))
    modules = "/usr/lib/ldap"
    (folder / "slapd.conf").write_text(
        f"{schemas}\nmodulepath {modules}\nmoduleload back_mdb\nTLSCertificateFile {made}\n"
        f'TLSCertificateKeyFile {key}\ndatabase mdb\nsuffix {BASE}\nrootdn {ROOT}\nrootpw "{ROOT_PASSWORD}"\n'
        f"directory {folder / 'db'}\nmaxsize 10485760\n"
    )
    (folder / "people.ldif").write_text(people())
    (folder / "password").write_text(ROOT_PASSWORD + "\n")
    subprocess.run(
        (SLAPD, "-T", "add", "-f", folder / "slapd.conf", "-l", folder / "people.ldif"), check=True, capture_output=True
    )
    port, secure = free_port(), free_port()
    process = subprocess.Popen(
        (SLAPD, "-d", "0", "-f", folder / "slapd.conf", "-h", f"ldap://127.0.0.1:{port} ldaps://127.0.0.1:{secure}"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(secure)
        settings = LdapSettings(
            f"ldaps://localhost:{secure}", ca=str(made), bind_dn=ROOT, bind_password_file=str(folder / "password"),
            base=f"ou=people,{BASE}", group_base=f"ou=groups,{BASE}", roles=ROLES, seconds=15.0,
        )  # fmt: skip
        yield Directory(settings, port, process)
    finally:
        process.terminate()
        process.wait(10)


def _wait(port: int) -> None:
    deadline = time.monotonic() + STARTED
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError("slapd does not listen")
