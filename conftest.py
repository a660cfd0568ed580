"""Ground rules for every test and doctest: pictures off screen, and no global state left changed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt


def _global_state() -> dict[str, Any]:
    """What a library must leave alone, as values that compare with ``==``."""
    name, keys, *rest = np.random.get_state()  # noqa: NPY002  (the legacy state is what is being watched)
    return {
        "numpy's global random state": (name, keys.tobytes(), rest),
        "numpy's error handling": np.geterr(),
        "matplotlib's rcParams": dict.copy(mpl.rcParams),
        "the warning filters": list(warnings.filters),
    }


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[None]:
    """Fail a test that changes global state; close the figures that it opened."""
    before = _global_state()
    yield
    plt.close("all")
    after = _global_state()
    changed = [name for name in before if before[name] != after[name]]
    assert not changed, f"changed by the test: {', '.join(changed)}"
