"""The table on the page "For users of R": every stored number of R within its limit, every R function on the page."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("r_agreement", ROOT / "docs" / "scripts" / "r_agreement.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["r_agreement"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["r_agreement"]


@pytest.fixture(scope="module")
def lines(script):
    return script.agreements()


def test_every_number_of_r_is_within_its_limit(lines):
    assert [line for line in lines if not line.kept] == []
    assert sum(line.differences.size for line in lines) > 100_000


def test_the_page_shows_this_table_and_every_function(script, lines):
    page = (ROOT / "docs" / "users_of_r.md").read_text(encoding="utf-8")
    written = (ROOT / "docs" / "_tables" / "r_agreement.md").read_text(encoding="utf-8").splitlines()
    columns = [row.split(" | ")[:4] for row in script.table(lines).splitlines()]
    assert [row.split(" | ")[:4] for row in written] == columns  # differences may vary with the machine
    for line in lines:
        assert line.function.removesuffix("()") + "(" in page


def test_a_broken_limit_is_seen(script):
    line = script.Agreement("f()", "x", "R", script.gaps(([1.0], [1.5])), 0.4)
    assert not line.kept
    assert "| 1e0 | 1e0 |" in script.table([line])
    with pytest.raises(ValueError, match="numbers against"):
        script.gaps(([1.0], [1.0, 2.0]))
