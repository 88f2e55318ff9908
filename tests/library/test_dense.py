"""What opening the dense index loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_lancedb_is_imported_without_its_clients_of_a_network(tmp_path: Path) -> None:
    """They take as long to import as the rest of it; whoever wants them later finds them whole."""
    script = (
        "import sys; from pathlib import Path; from localmed.library.dense import REMOTE, DenseIndex\n"
        "DenseIndex(Path(sys.argv[1]), 8)\n"
        "assert 'lancedb' in sys.modules and f'{REMOTE}.models' in sys.modules\n"
        "assert not {REMOTE, f'{REMOTE}.api', f'{REMOTE}.rest'} & set(sys.modules)\n"
        "import lance_namespace_urllib3_client; lance_namespace_urllib3_client.ApiClient\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=60)
