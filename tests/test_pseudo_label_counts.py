"""Counts of cells of classes in pseudo-label tests of many rows, against labels that are drawn."""

from __future__ import annotations

import numpy as np
from scipy import stats

import calstat as cs
from calstat._arrays import pseudo_labels, resampling
from calstat.metrics import _plans
from calstat.metrics import pseudo_labels as class_tests


def test_counts_of_classes_in_large_samples_have_the_law_of_drawn_labels():
    rng = np.random.default_rng(31)
    P = rng.dirichlet([0.3, 0.5, 2.0], 12_000)
    y = np.zeros(12_000, dtype=int)
    y[-2:] = [1, 2]
    sample = _plans.read(cs.ece, y, P, {"type": "classwise"}, freq_weights=None, event=None, classes=None)
    cells = _plans.cells(cs.ece, sample, {"type": "classwise"})
    fast = np.concatenate(list(class_tests._count_blocks(P, cells, 4000, 1 << 30, rng)))
    slow = np.concatenate(list(pseudo_labels.cell_counts(P, cells.index, cells.size, 4000, rng)))
    mean = np.bincount(cells.index.ravel(), weights=P.ravel(), minlength=cells.size)
    variance = np.bincount(cells.index.ravel(), weights=(P * (1 - P)).ravel(), minlength=cells.size)
    # means of 4000 draws are known to sd / 63; 30 cells stay within 4.5 of that
    assert np.all(np.abs(fast.mean(axis=0) - mean) <= 4.5 * np.sqrt(variance / 4000) + 1e-9)
    used = variance > 0
    np.testing.assert_allclose(fast.var(axis=0)[used], variance[used], rtol=0.15)
    np.testing.assert_allclose(np.corrcoef(fast[:, used].T), np.corrcoef(slow[:, used].T), atol=0.09)
    errors = [np.abs(counts - mean).sum(axis=1) for counts in (fast, slow)]
    assert stats.ks_2samp(*errors).pvalue > 0.001
    # one class at a time and all together they are whole numbers of rows
    assert np.array_equal(fast, np.round(fast))


def test_few_draws_or_rows_are_drawn_label_by_label(monkeypatch):
    P = np.random.default_rng(32).dirichlet([1.0, 1.0, 1.0], 2000)
    y = P.argmax(axis=1)
    wanted = cs.pseudo_label_test(y, P, n_resamples=50, rng=1).pvalue
    monkeypatch.setattr(resampling, "uniform_draws", None)
    assert cs.pseudo_label_test(y, P, n_resamples=50, rng=1).pvalue == wanted
