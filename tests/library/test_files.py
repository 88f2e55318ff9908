"""Files replaced in one step, also by several at once."""

from __future__ import annotations

import threading
from pathlib import Path

from localmed.process import files


def test_of_several_who_replace_one_file_each_writes_its_own(tmp_path: Path) -> None:
    """They shared one name beside it: one moved what another was writing, or found nothing to move."""
    path, failed = tmp_path / "kept.json", list[BaseException]()
    contents = [bytes([65 + number]) * 200_000 for number in range(6)]

    def write(content: bytes) -> None:
        try:
            for _ in range(20):
                files.replace(path, content)
                assert path.read_bytes() in contents, "whole, whoever's it is"
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [one.name for one in tmp_path.iterdir()] == ["kept.json"]
