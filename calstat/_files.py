"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(name: str | os.PathLike[str]) -> Iterator[Path]:
    """
    Give a path to write to, moved to `name` when the block ends well and removed when it does not.

    The file gets the permissions that `open` would give it: those of the file it replaces, else what the process
    grants to new files. Links stay links; devices and pipes are written directly. Raises `OSError` where the place
    cannot be written to.
    """
    target = Path(name).resolve()
    if target.exists() and not target.is_file() and not target.is_dir():
        yield target
        return
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".calstat-") as folder:
        temporary = Path(folder) / target.name
        yield temporary
        if target.is_file():
            shutil.copymode(target, temporary)
        temporary.replace(target)
