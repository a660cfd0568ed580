"""The study of coverage and size in its short forms; the long one is a command (see the module it loads)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

_PATH = Path(__file__).parents[1] / "studies" / "coverage_study.py"
_SPEC = importlib.util.spec_from_file_location("coverage_study", _PATH)
study = importlib.util.module_from_spec(_SPEC)
# Dataclasses look their module up by name.
sys.modules[_SPEC.name] = study
_SPEC.loader.exec_module(study)


def covers(share, runs, n):
    """Whether a coverage is compatible with at least 93% (92% at n = 100), two standard errors allowed."""
    return share + 2 * np.sqrt(max(share * (1 - share), 0.02) / runs) >= (0.92 if n <= 100 else 0.93)


def holds(share, runs):
    """Whether a size is compatible with at most 6%, two standard errors allowed."""
    return share - 2 * np.sqrt(max(share * (1 - share), 0.02) / runs) <= 0.06


@pytest.mark.parametrize(
    ("name", "kind", "n", "runs"),
    [
        ("ece", "calibrated", 300, 40),
        ("ece", "overconfident", 300, 40),
        ("ece", "rare", 100, 40),
        ("brier_score", "calibrated", 300, 100),
        ("slope", "overconfident", 300, 100),
    ],
)
def test_default_intervals_cover_in_a_few_samples(name, kind, n, runs):
    share, none = study.coverage(name, kind, n, runs)
    assert covers(share, runs, n)
    assert none == 0


def test_the_percentile_interval_of_the_ece_does_not_cover():
    share, _ = study.coverage("ece, percentile (as peers print)", "calibrated", 300, 40)
    assert share < 0.2


@pytest.mark.parametrize("name", ["logistic", "Spiegelhalter", "Hosmer-Lemeshow", "pseudo-label ECE"])
@pytest.mark.parametrize("kind", study.NULL)
def test_default_tests_hold_their_size_in_a_hundred_samples(name, kind):
    assert holds(study.rejection(name, kind, 300, 100)[0], 100)


@pytest.mark.slow
@pytest.mark.parametrize("n", study.SIZES)
@pytest.mark.parametrize("kind", study.BINARY)
@pytest.mark.parametrize("name", [name for name in study.INTERVALS if "peers" not in name])
def test_default_intervals_cover(name, kind, n):
    assert covers(study.coverage(name, kind, n, 500)[0], 500, n)


@pytest.mark.slow
@pytest.mark.parametrize("n", study.SIZES)
@pytest.mark.parametrize("kind", study.NULL)
@pytest.mark.parametrize("name", [name for name in study.TESTS if "peers" not in name])
def test_default_tests_hold_their_size(name, kind, n):
    assert holds(study.rejection(name, kind, n, 500)[0], 500)


@pytest.mark.slow
@pytest.mark.parametrize("K", [3, 10])
@pytest.mark.parametrize("kind", ["calibrated", "overconfident"])
@pytest.mark.parametrize("name", study.MATRIX_INTERVALS)
def test_default_intervals_of_matrices_cover(name, kind, K):
    assert covers(study.coverage(name, kind, 300, 200, K)[0], 200, 300)


@pytest.mark.slow
@pytest.mark.parametrize("K", [3, 10])
@pytest.mark.parametrize("name", study.MATRIX_TESTS)
def test_default_tests_of_matrices_hold_their_size(name, K):
    assert holds(study.rejection(name, "calibrated", 300, 500, K)[0], 500)
