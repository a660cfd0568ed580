"""Progress of long work: on request or on a terminal, on standard error only, and of the right length."""

from __future__ import annotations

import io
import sys
import time
from typing import Any

import numpy as np
import pytest

import calstat as cs
from calstat import _cli, _progress
from calstat.exceptions import InputError


class FakeBar:
    """Stands in for tqdm: remembers what it was told."""

    made: list[FakeBar]

    def __init__(self, **options: Any) -> None:
        self.options, self.done, self.closed = options, 0, False
        FakeBar.made.append(self)

    def __enter__(self) -> FakeBar:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def update(self, steps: int) -> None:
        self.done += steps


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[FakeBar]:
    FakeBar.made = []
    monkeypatch.setattr(_progress, "tqdm", FakeBar)
    return FakeBar.made


@pytest.fixture
def sample() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 120)
    return (rng.random(120) < p).astype(int), p


@pytest.fixture
def classes() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    P = rng.dirichlet([1.0, 1.0, 1.0], 90)
    return (rng.random((90, 1)) > P.cumsum(axis=1)).sum(axis=1), P


def mean_gap(y: np.ndarray, p: np.ndarray) -> float:
    return abs(float(np.mean(y - p)))


def fit_prevalence(_: Any, y: Any) -> Any:
    return lambda X: np.full(len(X), np.mean(y))


def test_every_long_function_counts_its_steps_to_the_end(
    bars: list[FakeBar], sample: tuple[np.ndarray, np.ndarray], classes: tuple[np.ndarray, np.ndarray]
) -> None:
    y, p = sample
    labels, P = classes
    cs.bootstrap(mean_gap, y, p, n_resamples=20, rng=1, progress=True)
    cs.bootstrap(cs.brier_score, y, p, n_resamples=30, rng=1, max_bytes=32 * 120 * 7, progress=True)
    cs.bootstrap(cs.ece, labels, P, type="classwise", n_resamples=25, rng=1, progress=True)
    cs.pseudo_label_test(y, p, mean_gap, n_resamples=40, rng=1, progress=True)
    cs.pseudo_label_test(labels, P, n_resamples=60, rng=1, progress=True)
    cs.validate(fit_prevalence, p, y, n_resamples=10, rng=1, progress=True)
    cs.validate(fit_prevalence, p, y, method="cv", folds=5, rng=1, progress=True)
    cs.DirichletCalibration(labels, P).fit_cv("probcal", folds=3, progress=True)
    cs.CrossValidatedCalibration(y, p, cs.LogisticCalibration, folds=4).fit(progress=True)
    cs.CrossValidatedCalibration(labels, P, cs.DirichletCalibration, folds=2).fit_cv(
        penalties=[cs.L2(0.1), cs.L2(1.0)], folds=2, progress=True
    )
    totals = [bar.options["total"] for bar in bars]
    assert totals == [20, 30, 25, 40, 60, 10, 5, 15, 5, 3]  # fits for the folds' own choices show no bar of theirs
    assert [bar.done for bar in bars] == totals
    assert all(bar.closed for bar in bars)
    assert all(bar.options["file"] is sys.stderr and bar.options["delay"] > 1 for bar in bars)


def test_nothing_is_shown_where_nobody_looks(
    bars: list[FakeBar], sample: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    for stream in (io.StringIO(), None):  # a file or pipe; a program without a console
        monkeypatch.setattr(sys, "stderr", stream)
        cs.bootstrap(mean_gap, *sample, n_resamples=5, rng=1)
    monkeypatch.setattr(sys, "stderr", Terminal())
    cs.bootstrap(mean_gap, *sample, n_resamples=5, rng=1, progress=False)
    assert not bars
    cs.bootstrap(mean_gap, *sample, n_resamples=5, rng=1)
    assert len(bars) == 1


def test_the_command_line_shows_progress_on_a_terminal(
    bars: list[FakeBar], monkeypatch: pytest.MonkeyPatch, tmp_path: Any, sample: tuple[np.ndarray, np.ndarray]
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    table = tmp_path / "scores.csv"
    table.write_text("y,p\n" + "".join(f"{a},{b}\n" for a, b in zip(*sample, strict=True)))
    assert _cli.main(["compare", str(table), "--outcome", "y", "--probs", "p", "--folds", "3"]) == 0
    assert [bar.options["desc"] for bar in bars] == [
        "fits of LogisticCalibration",
        "fits of BetaCalibration",
        "fits of IsotonicCalibration",
    ]


def test_a_bar_is_closed_when_the_work_fails(bars: list[FakeBar], sample: tuple[np.ndarray, np.ndarray]) -> None:
    def broken(y: np.ndarray, p: np.ndarray) -> float:
        if bars:
            raise ZeroDivisionError
        return 0.0

    with pytest.raises(ZeroDivisionError):
        cs.bootstrap(broken, *sample, n_resamples=5, rng=1, progress=True)
    assert bars[0].closed


def test_the_numbers_do_not_depend_on_the_bar(sample: tuple[np.ndarray, np.ndarray]) -> None:
    """Real tqdm: short work prints nothing, since the bar waits two seconds."""
    shown, hidden = (cs.bootstrap(mean_gap, *sample, n_resamples=9, rng=1, progress=on) for on in (True, False))
    np.testing.assert_array_equal(shown.distribution, hidden.distribution)


def test_short_work_prints_nothing(
    sample: tuple[np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cs.bootstrap(mean_gap, *sample, n_resamples=9, rng=1, progress=True)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(_progress, "_DELAY", 0.1)

    def slow(y: np.ndarray, p: np.ndarray) -> float:
        time.sleep(0.03)
        return mean_gap(y, p)

    cs.bootstrap(slow, *sample, n_resamples=20, ci_method="percentile", rng=1, progress=True)
    out, err = capsys.readouterr()
    assert not out
    assert "resamples of slow" in err


def test_without_tqdm(sample: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "tqdm", None)
    monkeypatch.setattr(sys, "stderr", Terminal())
    cs.bootstrap(mean_gap, *sample, n_resamples=5, rng=1)
    assert sys.stderr.getvalue() == ""
    with pytest.raises(InputError, match=r"pip install 'calstat\[progress\]'"):
        cs.bootstrap(mean_gap, *sample, n_resamples=5, rng=1, progress=True)
