"""The table of speed shows what the benchmarks printed, and of those that failed the reason without numbers."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def script(tmp_path: Path) -> dict[str, Any]:
    """The globals of the script, with two short benchmarks in place of the real ones."""
    names = runpy.run_path(str(ROOT / "docs" / "scripts" / "make_speed_table.py"))
    folder = tmp_path / "tests" / "benchmarks"
    folder.mkdir(parents=True)
    (folder / "bench_binary.py").write_text('"""Counting."""\nimport os\nprint("one", os.environ["OMP_NUM_THREADS"])\n')
    (folder / "bench_metrics.py").write_text('"""Adding.\n\nMore."""\nprint("half")\nassert False, "too slow"\n')
    shared = names["main"].__globals__
    shared.update(ROOT=tmp_path, PAGE=tmp_path / "speed.md")
    return shared


def test_numbers_and_reasons_are_written(script: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["make_speed_table.py", "--only", "binary", "metrics"])
    script["main"]()
    page = script["PAGE"].read_text(encoding="utf-8")
    assert "## Counting\n\n```text\none 1\n```\n" in page
    assert "## Adding\n\nMore.\n\nNo numbers: `AssertionError: too slow`\n" in page
    assert "half" not in page
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in page


def test_every_benchmark_is_run(script: dict[str, Any]) -> None:
    present = {path.stem.removeprefix("bench_") for path in (ROOT / "tests" / "benchmarks").glob("bench_*.py")}
    assert set(script["BENCHMARKS"]) == present
