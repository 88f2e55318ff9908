"""Settings of what happens at night: refresh, backup, and who is told when something fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RefreshSettings:
    """``[refresh]``: what ``localmed refresh`` watches."""

    folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by collection, beside those of its imports
    packs: tuple[str, ...] = ()  # folders in which content packs are looked for: where sticks are mounted, or a share
    settle_seconds: float = 60.0  # a file written to more recently is left for the next night: it may not be whole
    wait_seconds: float = 14_400.0  # for a change that a librarian makes at night, such as an import, to end
    free_bytes: int = 2 * 2**30  # with less left on the disk nothing is begun
    keep_reports: int = 400  # nights; a year and a month
    verify: bool = True  # every byte that is stored is read and compared with its hash first


@dataclass(frozen=True, slots=True)
class BackupSettings:
    """``[backup]``: where ``localmed backup`` writes, and how many backups stay there."""

    folder: str = ""  # on another disk; "": refresh makes none
    keep: int = 14  # backups; what only older ones hold is removed


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """``[alerts]``: who is told of a failed refresh, a full disk or a lost GPU, beside the banner."""

    syslog: bool = True  # the machine's own, through /dev/log
    mail_host: str = ""  # a relay by its address: loopback or a private one; "": no mail
    mail_port: int = 25
    mail_from: str = "localmed@localhost"
    mail_to: tuple[str, ...] = ()
    mail_seconds: float = 10.0  # for each answer of the relay
