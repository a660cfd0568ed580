"""Reliability diagrams: the numbers shown are those of the tables, the bands are those of draws from p."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from patsy import cr
from scipy import special, stats

import calstat as cs
from calstat import reliability
from calstat._arrays.pav import pav
from calstat.exceptions import InputError
from calstat.metrics import calibration_curve, classwise_ece, confidence_ece, ece, reliability_table
from calstat.reliability import confusion_diagram, reliability_diagram


@pytest.fixture
def data():
    rng = np.random.default_rng(4)
    p = rng.beta(0.8, 1.2, 400)
    return (rng.random(400) < p**1.3).astype(int), p


@pytest.fixture
def multiclass():
    rng = np.random.default_rng(7)
    P = rng.dirichlet([1.0, 0.7, 0.5, 0.9], 600)
    y = (P.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)
    return np.array(["ant", "bee", "cat", "dog"])[y], P


def look(**options):
    defaults = {
        "bins": 10, "strategy": "equal_width", "ci_method": "wilson", "band": "consistency", "curve": "corp",
        "alpha": 0.05, "n_resamples": 99,
    }  # fmt: skip
    return reliability.Look(**(defaults | options))


def points_of(ax):
    return ax.collections[-1].get_offsets()


def bars_of(ax):
    return ax.lines[-1].get_ydata().reshape(-1, 3)[:, :2]


def title_of(ax):
    return ax.get_title(loc="left")


class TestBinary:
    @pytest.mark.parametrize("options", [{}, {"bins": 7}, {"strategy": "equal_freq"}, {"bins": [0.0, 0.3, 1.0]}])
    def test_points_and_bars_are_the_reliability_table(self, data, options):
        ax = reliability_diagram(*data, n_resamples=49, rng=1, **options).axes[0]
        table = reliability_table(*data, **options).dropna()
        np.testing.assert_array_equal(points_of(ax), table[["mean_p", "mean_y"]])
        np.testing.assert_array_equal(bars_of(ax), table[["ci_low", "ci_high"]])

    def test_title_holds_the_error_and_its_p_value(self, data):
        ax = reliability_diagram(*data, n_resamples=99, rng=1).axes[0]
        assert title_of(ax).startswith(f"ECE {ece(*data):.3f} (95% interval 0.")
        assert "H0: calibrated" in title_of(ax)

    def test_curve_is_the_isotonic_fit(self, data):
        y, p = data
        ax = reliability_diagram(y, p, n_resamples=49, rng=1).axes[0]
        fit = pav(y, p)
        np.testing.assert_array_equal(ax.lines[1].get_xydata(), np.column_stack((fit.thresholds, fit.values)))

    def test_smooth_curve_is_the_spline_with_its_wald_band(self, data):
        y, p = data
        ax = reliability_diagram(y, p, curve="smooth", n_resamples=49, rng=1).axes[0]
        expected = calibration_curve(y, p, smoother="spline")
        curve = ax.lines[1].get_xydata()
        np.testing.assert_allclose(curve[:, 1], np.interp(curve[:, 0], expected["p"], expected["calibrated"]))
        assert [text.get_text() for text in ax.get_legend().get_texts()] == [
            "95% range if calibrated", "its 95% band", "smooth curve", "bins, 95% interval"
        ]  # fmt: skip
        # The same band from statsmodels' GLM on the same basis.
        logits = special.logit(np.unique(p))
        knots = np.quantile(logits, [0.05, 0.275, 0.5, 0.725, 0.95])
        basis = np.asarray(cr(special.logit(p), knots=knots[1:-1], lower_bound=knots[0], upper_bound=knots[-1]))
        fit = sm.GLM(y, basis, family=sm.families.Binomial()).fit(tol=1e-12)
        se = np.sqrt(np.einsum("ij,jk,ik->i", basis, fit.cov_params(), basis))
        eta = basis @ fit.params
        order = np.argsort(p)
        panel = reliability.binary_panel(y.astype(float), p, None, look(curve="smooth"), np.random.default_rng(1), "")
        place, low, high = panel.curve_band
        for ours, sign in ((low, -1), (high, 1)):
            theirs = special.expit(eta + sign * stats.norm.isf(0.025) * se)[order]
            np.testing.assert_allclose(ours, np.interp(place, p[order], theirs), atol=1e-6)

    def test_jeffreys_interval_on_request_and_none_on_request(self, data):
        ax = reliability_diagram(*data, ci_method="jeffreys", n_resamples=49, rng=1).axes[0]
        table = reliability_table(*data, ci_method="jeffreys").dropna()
        np.testing.assert_array_equal(bars_of(ax), table[["ci_low", "ci_high"]])
        plain = reliability_diagram(*data, ci_method=None, band=None, curve=None, n_resamples=49, rng=1).axes[0]
        assert len(plain.collections) == 1
        assert len(plain.lines) == 1

    def test_strip_counts_all_rows(self, data):
        ax = reliability_diagram(*data, n_resamples=49, rng=1).axes[0]
        assert sum(patch.get_height() for patch in ax.child_axes[0].patches) == 400

    def test_axes_end_above_the_largest_prediction_of_a_rare_event(self):
        rng = np.random.default_rng(0)
        p = rng.uniform(0.001, 0.03, 2000)
        y = rng.random(2000) < p
        ax = reliability_diagram(y, p, bins=5, strategy="equal_freq", n_resamples=49, rng=1).axes[0]
        assert ax.get_xlim() == ax.get_ylim()
        assert ax.get_xlim()[1] == pytest.approx(0.05, rel=0.02)

    def test_given_axes_are_used(self, data):
        figure, (left, right) = plt.subplots(1, 2)
        assert reliability_diagram(*data, n_resamples=49, rng=1, ax=right) is figure
        assert not left.has_data()

    def test_the_same_seed_gives_the_same_picture(self, data):
        shapes = [
            reliability_diagram(*data, n_resamples=49, rng=3).axes[0].collections[0].get_paths()[0].vertices
            for _ in range(2)
        ]
        np.testing.assert_array_equal(*shapes)

    def test_weights_are_repetitions(self, data):
        y, p = data
        w = np.arange(400) % 3
        weighted = reliability_diagram(y, p, freq_weights=w, n_resamples=49, rng=3).axes[0]
        repeated = reliability_diagram(np.repeat(y, w), np.repeat(p, w), n_resamples=49, rng=3).axes[0]
        np.testing.assert_allclose(points_of(weighted), points_of(repeated))
        assert title_of(weighted)[:9] == title_of(repeated)[:9]
        first, second = (
            reliability.binary_panel(*sample, look(), np.random.default_rng(3), "")
            for sample in (
                (y.astype(float), p, w.astype(float)),
                (np.repeat(y, w).astype(float), np.repeat(p, w), None),
            )
        )
        np.testing.assert_allclose(first.consistency, second.consistency)
        np.testing.assert_allclose(first.curve, second.curve)
        np.testing.assert_allclose(first.interval, second.interval)

    def test_other_weights_show_no_uncertainty(self, data):
        w = np.full(400, 0.5)
        ax = reliability_diagram(*data, freq_weights=w).axes[0]
        assert title_of(ax) == f"ECE {ece(*data):.3f}"
        assert len(ax.collections) == 1
        assert np.isnan(bars_of(ax)).all()

    def test_labels_and_series(self, data):
        y, p = data
        words = pd.Series(np.where(y == 1, "ill", "well"))
        ax = reliability_diagram(words, pd.Series(p), event="ill", n_resamples=49, rng=1).axes[0]
        np.testing.assert_array_equal(points_of(ax), reliability_table(y, p).dropna()[["mean_p", "mean_y"]])

    def test_one_outcome_only(self):
        figure = reliability_diagram([0, 0, 0], [0.1, 0.2, 0.6], event=1, n_resamples=49, rng=1)
        np.testing.assert_array_equal(points_of(figure.axes[0])[:, 1], 0.0)

    @pytest.mark.parametrize("name", ["curve", "band", "ci_method"])
    def test_unknown_choices_are_named(self, data, name):
        with pytest.raises(InputError, match=f"`{name}`"):
            reliability_diagram(*data, **{name: "nonsense"})


class TestBands:
    def test_curve_band_holds_the_quantiles_of_isotonic_fits_of_drawn_labels(self):
        p = np.sort(np.random.default_rng(1).beta(1.0, 1.0, 120))
        places, low, high = reliability._curve_band(p, 0.1, np.random.default_rng(2))
        np.testing.assert_allclose(places, p)
        rng = np.random.default_rng(3)
        fits = np.array([pav((rng.random(120) < p).astype(float), p).predict(p) for _ in range(2000)])
        # Both are quantiles of a few hundred draws of a law that lies on few values: the levels that they
        # reach among the other draws are compared.
        assert np.abs((fits <= high + 1e-12).mean(axis=0) - 0.95).mean() < 0.03
        assert np.abs((fits < low - 1e-12).mean(axis=0) - 0.05).mean() < 0.05

    def test_curve_band_of_many_rows_is_close_to_that_of_single_rows(self, monkeypatch):
        p = np.sort(np.random.default_rng(5).beta(1.0, 2.0, 3000))
        coarse = reliability._curve_band(p, 0.05, np.random.default_rng(6))
        monkeypatch.setattr(reliability, "_GROUPS", 10_000)
        fine = reliability._curve_band(p, 0.05, np.random.default_rng(7))
        assert coarse[0].size < 1001 < fine[0].size == 3000
        inner = (p > 0.02) & (p < 0.8)
        for side in (1, 2):
            at = np.interp(p[inner], coarse[0], coarse[side])
            # Standard error of a 2.5% quantile of 500 draws: about 0.012 here.
            assert np.abs(at - fine[side][inner]).mean() < 0.01

    def test_ties_share_a_place(self):
        p = np.repeat([0.2, 0.4, 0.9], [500, 700, 3])
        places, low, high = reliability._curve_band(p, 0.05, np.random.default_rng(1))
        np.testing.assert_allclose(places, [0.2, 0.4, 0.9])
        assert (low <= high).all()

    def test_bin_band_is_the_binomial_law_for_equal_probabilities(self):
        p = np.repeat([0.25, 0.75], [40, 25])
        x, low, high = reliability._bin_band(p, np.array([0.0, 0.5, 0.8, 1.0]), 0.05)
        np.testing.assert_array_equal(x, [0.0, 0.5, 0.5, 0.8, 0.8, 1.0])
        for place, (n, q) in enumerate([(40, 0.25), (25, 0.75)]):
            expected = stats.binom.ppf([0.025, 0.975], n, q) / n
            np.testing.assert_allclose((low[2 * place], high[2 * place]), expected)
        assert np.isnan([low[4], high[5]]).all()

    def test_band_belongs_to_the_bins_where_there_is_no_curve(self, data):
        y, p = data
        panel = reliability.binary_panel(y.astype(float), p, None, look(curve=None), np.random.default_rng(1), "title")
        assert panel.curve is None
        np.testing.assert_array_equal(np.unique(panel.consistency[0]), np.arange(11) / 10)


class TestMatrices:
    def test_confidence_compares_the_top_label_with_being_right(self, multiclass):
        ax = reliability_diagram(*multiclass, type="confidence", n_resamples=49, rng=1).axes[0]
        assert title_of(ax).startswith(f"ECE {confidence_ece(*multiclass):.3f}")
        table = reliability_table(*multiclass, type="confidence").dropna()
        np.testing.assert_allclose(points_of(ax), table[["mean_p", "mean_y"]])
        assert ax.get_ylabel() == "Accuracy"
        assert ax.child_axes[0].get_xlabel() == "Confidence"

    def test_classwise_has_a_panel_for_each_class(self, multiclass):
        figure = reliability_diagram(*multiclass, type="classwise", n_resamples=49, rng=1)
        assert len(figure.axes) == 4
        errors = classwise_ece(*multiclass)
        for ax, name in zip(figure.axes, ["ant", "bee", "cat", "dog"], strict=True):
            assert title_of(ax) == f"{name}: ECE {errors[name]:.3f}"
            table = reliability_table(*multiclass, type="classwise").loc[name].dropna()
            np.testing.assert_allclose(points_of(ax), table[["mean_p", "mean_y"]])
            assert ax.get_xlim() == figure.axes[0].get_xlim()
        assert figure.get_suptitle().startswith(f"Classwise ECE {errors.mean():.3f}")

    def test_many_classes_show_the_worst_and_the_ranking(self):
        rng = np.random.default_rng(2)
        P = rng.dirichlet(np.full(25, 0.3), 500)
        y = (P.cumsum(axis=1) > rng.random((500, 1))).argmax(axis=1)
        figure = reliability_diagram(y, P, type="classwise", classes=range(25), n_resamples=19, rng=1)
        assert len(figure.axes) == 12
        errors = classwise_ece(y, P, classes=range(25)).sort_values(ascending=False)
        shown = [int(title_of(ax).split(":")[0]) for ax in figure.axes[:11]]
        assert shown == list(errors.index[:11])
        np.testing.assert_allclose(figure.axes[11].lines[0].get_ydata(), errors)

    def test_one_axes_cannot_hold_all_classes(self, multiclass):
        _, ax = plt.subplots()
        with pytest.raises(InputError, match="`ax` holds one diagram"):
            reliability_diagram(*multiclass, type="classwise", ax=ax)

    def test_a_matrix_needs_its_reading(self, multiclass):
        with pytest.raises(InputError, match="`type`"):
            reliability_diagram(*multiclass)

    def test_a_class_that_does_not_occur(self, multiclass):
        y, P = multiclass
        kept = y != "cat"
        figure = reliability_diagram(
            y[kept], P[kept], type="classwise", classes=["ant", "bee", "cat", "dog"], n_resamples=19, rng=1
        )
        assert isinstance(figure, Figure)
        np.testing.assert_array_equal(points_of(figure.axes[2])[:, 1], 0.0)


class TestSeveralForecasts:
    def test_bins_intervals_and_errors_of_each(self, data):
        y, p = data
        forecasts = {"plain": p, "flat": 0.5 + 0.4 * (p - 0.5)}
        ax = reliability_diagram(y, forecasts).axes[0]
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert labels == [f"{name}: ECE {ece(y, q):.3f}" for name, q in forecasts.items()]
        for line, bars, q in zip(ax.lines[1:], ax.collections, forecasts.values(), strict=True):
            table = reliability_table(y, q).dropna()
            np.testing.assert_array_equal(line.get_xydata(), table[["mean_p", "mean_y"]])
            ends = np.array([segment[:, 1] for segment in bars.get_segments()])
            np.testing.assert_array_equal(ends, table[["ci_low", "ci_high"]])

    def test_without_intervals(self, data):
        y, p = data
        assert not reliability_diagram(y, {"a": p}, ci_method=None).axes[0].collections

    def test_top_labels(self, multiclass):
        y, P = multiclass
        ax = reliability_diagram(y, {"a": P, "b": P**2 / (P**2).sum(axis=1, keepdims=True)}, type="confidence").axes[0]
        assert ax.get_ylabel() == "Accuracy"
        assert len(ax.lines) == 3

    def test_panels_by_class_are_refused(self, multiclass):
        y, P = multiclass
        with pytest.raises(InputError, match="several forecasts"):
            reliability_diagram(y, {"a": P}, type="classwise")


class Sharpened:
    """A map that squares probabilities."""

    classes = ("a", "b", "c")

    def predict(self, p):
        return p**2 / (p**2).sum(axis=1, keepdims=True)


class TestSimplex:
    def test_arrows_start_on_the_grid_and_end_where_the_map_says(self):
        ax = reliability.simplex_diagram(Sharpened()).axes[0]
        arrows = ax.collections[0]
        corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
        tails = np.column_stack((arrows.X, arrows.Y))
        assert len(tails) == 45
        barycentric = np.linalg.solve(np.vstack((corners.T, np.ones(3))), np.vstack((tails.T, np.ones(len(tails))))).T
        assert (barycentric > 0).all()
        ends = Sharpened().predict(barycentric) @ corners
        np.testing.assert_allclose(np.column_stack((arrows.U, arrows.V)), ends - tails, atol=1e-10)

    def test_interpretation_points(self):
        start, end = reliability.simplex_diagram(Sharpened()).axes[0].collections[-2:]
        corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
        points = np.array([[1 / 3] * 3, [1e-3, 0.4995, 0.4995], [0.4995, 1e-3, 0.4995], [0.4995, 0.4995, 1e-3]])
        np.testing.assert_allclose(start.get_offsets(), points @ corners)
        np.testing.assert_allclose(end.get_offsets(), Sharpened().predict(points) @ corners)

    @pytest.mark.parametrize("model", ["dirichlet", "vector", "temperature"])
    def test_regions_of_the_interpretation_points(self, model):
        """Ellipses of the log ratios: each outline point is as far from the centre as the chi-square quantile says."""
        rng = np.random.default_rng(1)
        p = rng.dirichlet(np.ones(3), size=400)
        y = (p.cumsum(axis=1)[:, :-1] < rng.random((400, 1))).sum(axis=1)
        kinds = {"dirichlet": cs.DirichletCalibration, "vector": cs.VectorScaling, "temperature": cs.TemperatureScaling}
        res = kinds[model](y, p, **({} if model == "dirichlet" else {"scores": "probability"})).fit()
        outlines = reliability.simplex_diagram(res, alpha=0.1).axes[0].patches
        assert len(outlines) == 4
        point = np.array([[1e-3, 0.4995, 0.4995]])
        # The log odds of the first class have a standard error of their own, which the region's shadow must match:
        # its half-width is that times the root of the chi-square quantile, to first order.
        corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
        plane = np.vstack((corners.T, np.ones(3)))
        xy = outlines[1].get_xy()
        outline = np.linalg.solve(plane, np.vstack((xy.T, np.ones(len(xy))))).T
        frame = res.get_prediction(point).summary_frame()
        se = res.get_prediction(point).se_linear[0]
        odds = np.log(outline[:, 0]) - np.log(outline[:, 1:].sum(axis=1))
        # Curvature of the log odds over the region: a tenth.
        assert np.ptp(odds) / 2 == pytest.approx(se * np.sqrt(stats.chi2.isf(0.1, 2)), rel=0.1)
        assert outline[:, 0].min() < frame["mean"].iloc[0] < outline[:, 0].max()

    def test_without_a_covariance_there_are_no_regions(self):
        rng = np.random.default_rng(1)
        p = rng.dirichlet(np.ones(3), size=200)
        y = (p.cumsum(axis=1)[:, :-1] < rng.random((200, 1))).sum(axis=1)
        assert not reliability.simplex_diagram(cs.DirichletCalibration(y, p).fit(cov=False)).axes[0].patches
        assert not reliability.simplex_diagram(Sharpened()).axes[0].patches

    def test_predictions_are_shown_as_a_density(self, multiclass):
        P = multiclass[1][:, :3] / multiclass[1][:, :3].sum(axis=1, keepdims=True)
        ax = reliability.simplex_diagram(Sharpened(), P).axes[0]
        assert ax.collections[0].get_array().sum() == pytest.approx(len(P))

    def test_other_numbers_of_classes_are_refused(self, multiclass):
        class Two:
            classes = ("a", "b")

        with pytest.raises(InputError, match="three classes"):
            reliability.simplex_diagram(Two())
        with pytest.raises(InputError, match="three columns"):
            reliability.simplex_diagram(Sharpened(), multiclass[1])


def test_a_confusion_diagram_shows_counts_and_their_change() -> None:
    y = ["a", "b", "c", "b"]
    before = np.array([[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.2, 0.2, 0.6], [0.1, 0.8, 0.1]])
    after = before.copy()
    after[1] = [0.3, 0.6, 0.1]
    figure = confusion_diagram(y, before, after, freq_weights=[1, 2, 1, 1], classes=["a", "b", "c"])
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert any("3" in t and "2" in t for t in texts)  # class b: 1 right before, 3 after
    frame = pd.DataFrame(before, columns=["a", "b", "c"])
    with pytest.raises(InputError, match="same classes in the same order"):
        confusion_diagram(y, frame, frame[["b", "a", "c"]])
