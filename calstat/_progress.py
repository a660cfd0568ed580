"""Progress of long work on standard error, shown by tqdm where that is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from calstat.exceptions import InputError

try:
    from tqdm import tqdm
except ImportError:  # the optional extra "progress"
    tqdm = None

Advance: TypeAlias = Callable[[int], Any]

_DELAY = 2.0  # seconds of work before anything is shown


@contextmanager
def progress_bar(total: int, label: str, wanted: bool | None) -> Iterator[Advance]:
    """Give a function that takes the number of steps just done; None is shown on a terminal only, False never."""
    if wanted and tqdm is None:
        raise InputError("progress=True needs tqdm: pip install 'calstat[progress]'.")
    if wanted or (wanted is None and tqdm is not None and _on_terminal()):
        with tqdm(total=total, desc=label, delay=_DELAY, leave=False, file=sys.stderr) as bar:
            yield bar.update
    else:
        yield _unseen


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _unseen(_: int) -> None:
    """Show nothing."""
