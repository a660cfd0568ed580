"""The study of coverage and size: its machinery, and the goal in a few samples; all cells in the slow tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

STUDIES = Path(__file__).parents[1] / "studies"


def load(name):
    spec = importlib.util.spec_from_file_location(name, STUDIES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    # The tables import the study by name, and named tuples look their module up.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


study = load("coverage_study")
tables = load("coverage_tables")
Cell, Count, Job, Row = study.Cell, study.Count, study.Job, study.Row


def counts_of(cell, runs, evaluators):
    return study.run(Job(cell, 0, runs, evaluators))[1]


def assert_goal(cell, runs, evaluators):
    """Check that no default interval or test misses the goal of the documentation by two standard errors."""
    found = counts_of(cell, runs, evaluators)
    missed = [(row.name, c.rate) for row, c in found.items() if tables.judged(row) and tables.off_goal(cell, row, c)]
    assert missed == []


FEW = [
    (Cell(2, "calibrated", 300), (study.ece_interval, study.score_intervals, study.val_prob_intervals)),
    (Cell(2, "overconfident", 300), (study.ece_interval, study.ece2_interval, study.mce_interval)),
    (Cell(2, "rare", 100), (study.ece_interval, study.ace_interval)),
    (Cell(2, "calibrated", 300), (study.battery,)),
    (Cell(2, "ties", 300), (study.battery,)),
    (Cell(3, "calibrated", 300), (study.confidence_interval, study.class_tests)),
]


@pytest.mark.parametrize(("cell", "evaluators"), FEW)
def test_the_goal_holds_in_forty_samples(cell, evaluators):
    assert_goal(cell, 40, evaluators)


def test_the_percentile_interval_of_the_ece_does_not_cover():
    found = counts_of(Cell(2, "calibrated", 300), 40, (study.ece_interval,))
    assert found[Row("interval", "ece, percentile (as peers print)")].rate < 0.2


def test_the_tests_of_classes_are_those_of_the_battery():
    y, P = study.draw(Cell(3, "overconfident", 100), 0)
    battery = study.battery(y, P, 1)
    assert {*study.class_tests(y, P, 1), *study.class_kernel_test(y, P, 1)} == set(battery)
    # The first test of both, so that it sees the same random numbers.
    assert (
        study.class_tests(y, P, 1)["Recalibration by TemperatureScaling"]
        == battery["Recalibration by TemperatureScaling"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("cell", study.cells())
def test_the_goal_holds_in_two_hundred_samples(cell):
    assert_goal(cell, 200, study.evaluators(cell.K))


@pytest.mark.parametrize("K", [2, 3, 10])
@pytest.mark.parametrize("kind", study.KINDS)
def test_true_rates_are_probabilities(K, kind):
    rng = np.random.default_rng(1)
    p, q = study.draw_binary(kind, 2000, rng) if K == 2 else study.draw_matrix(kind, K, 2000, rng)
    for values in (p, q):
        assert ((values > 0) & (values < 1)).all()
        if K > 2:
            np.testing.assert_allclose(values.sum(axis=1), 1, atol=1e-12)  # K roundings
    assert np.array_equal(p, q) == (kind in study.NULL)


def test_population_truths_agree_with_closed_forms(monkeypatch):
    # 100,000 rows: the mean of (q - p)^2 and the like are known to 0.3%; the slope and the shift are exact.
    monkeypatch.setattr(study, "POPULATION", 100_000)
    truths = study.truths.__wrapped__
    flat, shifted = truths(2, "overconfident"), truths(2, "shifted")
    assert flat["val_prob: Slope"] == pytest.approx(0.7, abs=1e-8)
    assert shifted["val_prob: Intercept (slope 1)"] == pytest.approx(-0.3, abs=1e-8)
    for kind in study.NULL:
        found = truths(2, kind)
        assert found["ece"] == pytest.approx(0, abs=1e-12)
        assert found["val_prob: O/E"] == pytest.approx(1, abs=1e-12)
    # Under calibration the expected Brier score is the mean of 1 - sum of squares.
    P = study.draw_matrix("calibrated", 3, 100_000, study.seeded(0, "truth", "calibrated", 3))[0]
    assert truths(3, "calibrated")["brier_score"] == pytest.approx(1 - (P**2).sum(axis=1).mean(), abs=1e-12)


def one_interval(y, p, _):
    return {"ece": (0.0, float(y.mean())), "by rank": 0.05 if y[0] else 0.9}


def one_gap(y, p, _):
    return {"brier_score": (np.nan, np.nan)}


def test_a_study_that_is_continued_equals_one_that_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "POPULATION", 10_000)
    monkeypatch.setattr(study, "BATCH", 7)
    where = study.cells([2], [100])[:2]
    whole = study.study(tmp_path / "whole.csv", where, 20, every=lambda _: (one_interval, one_gap))
    parts = tmp_path / "parts.csv"
    study.study(parts, where, 10, every=lambda _: (one_interval,))
    # A row that is added later catches up on the same samples.
    study.study(parts, where, 20, every=lambda _: (one_interval, one_gap))
    assert parts.read_text() == (tmp_path / "whole.csv").read_text()
    count = whole[where[0], Row("interval", "ece")]
    assert (count.runs, count.hits) == (20, 20)
    assert whole[where[0], Row("interval", "brier_score")].none == 20
    drawn = [study.draw(where[0], i)[0] for i in range(20)]
    assert whole[where[0], Row("test", "by rank")].hits == sum(y[0] == 1 for y in drawn)
    assert count.width == pytest.approx(sum(y.mean() for y in drawn), rel=1e-5)  # six digits are kept


def test_entries_that_miss_the_goal_are_marked():
    cell = Cell(2, "calibrated", 300)
    interval, test = Row("interval", "ece"), Row("test", "Spiegelhalter")
    entry = lambda row, hits, kind="calibrated": tables.entry(  # noqa: E731
        cell._replace(kind=kind), row, Count(1000, hits), judge=True
    )
    assert entry(interval, 925) == "92.5"  # within two standard errors, 1.7 points, of 93
    assert entry(interval, 905) == "**90.5**"
    assert entry(test, 74) == "7.4"
    assert entry(test, 80) == "**8.0**"
    assert entry(test, 30) == "3.0"
    assert entry(test, 20) == "**2.0**"
    assert entry(test, 20, "rare") == "2.0"
    assert entry(test, 900, "shifted") == "90.0"
    assert tables.entry(cell, interval, Count(100, 90, 5), judge=True) == "94.7 (5% none)"


def test_of_two_files_the_longer_run_of_a_row_is_taken(tmp_path):
    cell, row, other = Cell(2, "rare", 100), Row("test", "KS"), Row("test", "Kuiper")
    short, long, files = Count(100, 7), Count(300, 12), [tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "none.csv"]
    study.write(files[0], {(cell, row): short, (cell, other): long})
    study.write(files[1], {(cell, row): long, (cell._replace(n=300), row): short})
    found = tables.merged(files)
    assert found == {(cell, row): long, (cell, other): long, (cell._replace(n=300), row): short}
    shown = tables.table(found, 2, "test", ["rare"], lambda _, __, count: str(count and count.hits))
    assert shown.splitlines()[0] == "| | data | n = 100 | n = 300 |"
    assert "| KS | rare | 12 | 7 |" in shown
    assert "| Kuiper | rare | 12 | None |" in shown
    assert "100 to 300 samples an entry; the standard error of an entry of 95 or 5 is 1.3 to 2.2 points." in shown


def test_the_documentation_shows_the_counts():
    counts, peers = study.read(study.RESULTS), study.read(tables.PEERS)
    assert tables.PAGE.read_text(encoding="utf-8") == tables.page(counts, peers)
    assert tables.POWER.read_text(encoding="utf-8") == tables.power(counts)
