"""Pictures: what is drawn is what was passed, sizes suit the axes, and nothing else is touched."""

from __future__ import annotations

import inspect
import io
from typing import ClassVar

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from calstat import plots
from calstat.plots import _style

MEAN_P = np.array([0.05, 0.3, np.nan, 0.7, 0.95])
MEAN_Y = np.array([0.10, 0.2, np.nan, 0.8, 0.90])
LOW, HIGH = MEAN_Y - 0.05, MEAN_Y + 0.1
COUNT = np.array([100.0, 25.0, 0.0, 25.0, 4.0])
GRID = np.linspace(0.0, 1.0, 11)
BAND = (GRID, 0.9 * GRID, GRID + 0.1 * (1 - GRID))
HISTOGRAM = (np.array([0.0, 0.5, 1.0]), np.array([120.0, 34.0]))
SIMPLEX = np.array([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [1 / 3, 1 / 3, 1 / 3]])

CALLS = {
    "reliability": lambda ax: plots.reliability(MEAN_P, MEAN_Y, count=COUNT, interval=(LOW, HIGH), ax=ax),
    "reliability_overlay": lambda ax: plots.reliability_overlay({"a": (MEAN_P, MEAN_Y)}, ax=ax),
    "calibration_belt": lambda ax: plots.calibration_belt(GRID, [(0.95, *BAND[1:])], ax=ax),
    "calibration_map": lambda ax: plots.calibration_map(GRID, GRID**2, band=BAND[1:], ax=ax),
    "simplex_map": lambda ax: plots.simplex_map(SIMPLEX, SIMPLEX[::-1], classes="abc", predictions=SIMPLEX, ax=ax),
    "matrix_heatmap": lambda ax: plots.matrix_heatmap(np.eye(3), rows="abc", columns="abc", ax=ax),
    "confusion_change": lambda ax: plots.confusion_change(np.eye(3), np.ones((3, 3)), classes="abc", ax=ax),
    "penalty_path": lambda ax: plots.penalty_path([0.0, 1.0], [0.5, 0.6], ax=ax),
    "null_distribution": lambda ax: plots.null_distribution([0.1, 0.2, np.nan], 0.3, expected=0.15, ax=ax),
    "bootstrap_distribution": lambda ax: plots.bootstrap_distribution([0.1, 0.2, np.nan], 0.1, 0.0, 0.3, ax=ax),
    "critical_difference": lambda ax: plots.critical_difference([1.1, 1.9], ["a", "b"], 0.5, ax=ax),
}


def rendered(figure: Figure, **options: object) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=50, **options)
    return stream.getvalue()


@pytest.mark.parametrize("name", sorted(CALLS))
def test_draws_on_the_given_axes_and_returns_their_figure(name):
    figure, (left, right) = plt.subplots(1, 2)
    assert CALLS[name](right) is figure
    assert right.has_data() or right.texts
    assert not left.has_data()


@pytest.mark.parametrize("name", sorted(CALLS))
def test_without_axes_a_new_figure_comes_back_and_rcparams_stay(name, capsys):
    before = dict(mpl.rcParams)
    figure = CALLS[name](None)
    assert isinstance(figure, Figure)
    assert plt.get_fignums() == [figure.number]
    assert rendered(figure)
    assert dict(mpl.rcParams) == before
    assert capsys.readouterr().out == ""


def test_axes_in_a_subfigure_give_the_whole_figure():
    figure = plt.figure()
    ax = figure.subfigures(1, 2)[0].subplots()
    assert CALLS["reliability"](ax) is figure


def test_every_public_picture_takes_axes_except_the_panels():
    without = {name for name in plots.__all__ if "ax" not in inspect.signature(getattr(plots, name)).parameters}
    assert without == {"reliability_panels"}
    assert set(CALLS) == set(plots.__all__) - without


def test_inputs_are_not_changed():
    values = MEAN_P.copy()
    plots.reliability(values, MEAN_Y, interval=(LOW, HIGH), count=COUNT, histogram=HISTOGRAM)
    np.testing.assert_array_equal(values, MEAN_P)


class TestReliability:
    def test_points_bars_and_areas(self):
        ax = plots.reliability(MEAN_P, MEAN_Y, interval=(LOW, HIGH), count=COUNT).axes[0]
        (points,) = ax.collections
        shown = np.isfinite(MEAN_P)
        np.testing.assert_array_equal(points.get_offsets(), np.column_stack((MEAN_P, MEAN_Y))[shown])
        bars = ax.lines[-1].get_xydata().reshape(-1, 3, 2)
        np.testing.assert_array_equal(bars[:, :2, 1], np.column_stack((LOW, HIGH))[shown])
        np.testing.assert_array_equal(bars[:, 0, 0], MEAN_P[shown])
        areas = points.get_sizes()
        # A quarter of the rows: half the share of the area that depends on the count.
        np.testing.assert_allclose((areas[1] - 14 * (areas[0] / 60)) / (areas[0] - 14 * (areas[0] / 60)), 0.5)
        assert areas[0] > areas[1] == areas[2] > areas[3]

    def test_curve_and_bands_carry_their_numbers(self):
        labels = {"consistency": "band", "curve": "curve", "points": "bins"}
        curve = ([0.1, 0.1, 0.9], [0.2, 0.4, 0.8])
        ax = plots.reliability(MEAN_P, MEAN_Y, consistency=BAND, curve=curve, curve_band=BAND, labels=labels).axes[0]
        diagonal, line = ax.lines
        np.testing.assert_array_equal(line.get_xydata(), np.transpose(curve))
        np.testing.assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
        for shape in ax.collections[:2]:
            corners = shape.get_paths()[0].vertices
            for x, low, high in np.transpose(BAND):
                assert np.any(np.all(np.isclose(corners, [x, low]), axis=1))
                assert np.any(np.all(np.isclose(corners, [x, high]), axis=1))
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["band", "curve", "bins"]

    def test_histogram_strip_holds_the_counts_below_the_diagram(self):
        figure = plots.reliability(MEAN_P, MEAN_Y, histogram=HISTOGRAM)
        (ax,) = figure.axes
        (strip,) = ax.child_axes
        assert [patch.get_height() for patch in strip.patches] == [120.0, 34.0]
        assert [patch.get_x() for patch in strip.patches] == [0.0, 0.5]
        assert strip.get_xlabel() == "Predicted probability"
        assert ax.get_xlabel() == ""
        figure.draw_without_rendering()
        assert strip.get_window_extent().y1 < ax.get_window_extent().y0
        assert strip.get_xlim() == ax.get_xlim()

    def test_limits_zoom_both_axes(self):
        ax = plots.reliability([0.01], [0.02], limits=(0.0, 0.05)).axes[0]
        assert ax.get_xlim() == ax.get_ylim()
        assert 0.05 < ax.get_xlim()[1] < 0.06

    def test_no_bins_at_all_still_draws(self):
        figure = plots.reliability([np.nan], [np.nan], count=[0], interval=([np.nan], [np.nan]))
        assert len(figure.axes[0].collections[-1].get_offsets()) == 0
        assert rendered(figure)

    def test_small_axes_get_smaller_text_and_no_legend(self):
        large = plots.reliability(MEAN_P, MEAN_Y, labels={"points": "bins"}, title="t").axes[0]
        _, grid = plt.subplots(4, 5, figsize=(7, 6))
        small = grid[0, 0]
        plots.reliability(MEAN_P, MEAN_Y, labels={"points": "bins"}, title="t", ax=small)
        assert small._left_title.get_fontsize() < large._left_title.get_fontsize()
        assert large.get_legend() is not None
        assert small.get_legend() is None

    def test_a_long_title_is_broken_to_the_width_of_its_axes(self):
        _, (ax, _) = plt.subplots(1, 2, figsize=(5, 3))
        plots.reliability(MEAN_P, MEAN_Y, title="ECE 0.071 [0.041, 0.102]; p = 0.003; n = 400, 178 events", ax=ax)
        title = ax._left_title
        assert title.get_text().count("\n") >= 1
        ax.figure.draw_without_rendering()
        assert title.get_window_extent().width < 1.1 * ax.get_window_extent().width


class TestPanels:
    panel: ClassVar = {"mean_p": MEAN_P, "mean_y": MEAN_Y, "count": COUNT, "title": "class"}

    @pytest.mark.parametrize(("count", "columns"), [(2, 2), (3, 3), (4, 2), (10, 4), (20, 5)])
    def test_one_panel_each_in_rows(self, count, columns):
        figure = plots.reliability_panels([self.panel] * count, title="all")
        assert len(figure.axes) == count
        assert figure.axes[0].get_gridspec().ncols == columns
        assert figure.get_suptitle() == "all"
        assert figure.get_supxlabel() == "Predicted probability"

    @pytest.mark.parametrize("count", [2, 3, 10, 20])
    def test_the_outer_texts_touch_no_panel(self, count):
        panel = {**self.panel, "histogram": HISTOGRAM}
        figure = plots.reliability_panels([panel] * count, title="a title\nin two lines")
        figure.draw_without_rendering()
        boxes = [ax.get_tightbbox() for ax in figure.axes]
        for text in (figure._suptitle, figure._supxlabel, figure._supylabel):
            extent = text.get_window_extent()
            assert not any(extent.overlaps(box) for box in boxes), text

    def test_inner_panels_drop_the_tick_labels_of_the_shared_axis(self):
        axes = plots.reliability_panels([self.panel] * 4).axes
        labelled = [ax.yaxis.get_tick_params()["labelleft"] for ax in axes]
        assert labelled == [True, False, True, False]

    def test_ranking_shows_all_values_from_the_largest_down(self):
        figure = plots.reliability_panels([self.panel], summary=(["a", "b", "c"], [0.1, 0.3, 0.2]))
        line = figure.axes[1].lines[0]
        np.testing.assert_array_equal(line.get_ydata(), [0.3, 0.2, 0.1])
        assert [text.get_text() for text in figure.axes[1].texts] == ["b"]
        assert "all 3" in figure.axes[1].get_title(loc="left")


class TestOtherCurves:
    def test_six_forecasters_differ_in_colour_marker_and_line(self):
        ax = plots.reliability_overlay({f"m{i}": (MEAN_P, MEAN_Y) for i in range(6)}).axes[0]
        lines = ax.lines[1:]
        for look in ("get_color", "get_marker", "get_linestyle"):
            styles = [getattr(line, look)() for line in lines]
            assert len(set(styles)) >= 4, look
        assert len({(line.get_color(), line.get_marker(), line.get_linestyle()) for line in lines}) == 6

    def test_intervals_of_each_forecaster(self):
        ax = plots.reliability_overlay(
            {"a": (MEAN_P, MEAN_Y), "b": (MEAN_P, MEAN_P)}, intervals={"a": (LOW, HIGH)}
        ).axes[0]
        assert len(ax.collections) == 1
        assert len(ax.collections[0].get_segments()) == 4

    def test_belt_draws_the_widest_first(self):
        bands = [(0.8, GRID, GRID), (0.95, BAND[1], BAND[2])]
        ax = plots.calibration_belt(GRID, bands, histogram=HISTOGRAM).axes[0]
        assert [shape.get_label() for shape in ax.collections] == ["95% belt", "80% belt"]
        assert ax.collections[0].get_alpha() < ax.collections[1].get_alpha()

    def test_map_of_a_margin_has_no_diagonal(self):
        margin = np.linspace(-3.0, 5.0, 9)
        ax = plots.calibration_map(margin, 1 / (1 + np.exp(-margin)), identity=False).axes[0]
        assert len(ax.lines) == 1
        assert ax.get_xlim() == (-3.0, 5.0)

    def test_map_points_and_identity(self):
        ax = plots.calibration_map(GRID, GRID, points=(MEAN_P, MEAN_Y)).axes[0]
        np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[0, 0], [1, 1]])
        np.testing.assert_array_equal(ax.lines[1].get_xydata(), np.column_stack((GRID, GRID)))


class TestSimplex:
    def test_arrows_run_from_start_to_end_in_the_plane(self):
        start = np.eye(3)
        end = np.full((3, 3), 1 / 3)
        ax = plots.simplex_map(start, end, classes=["a", "b", "c"]).axes[0]
        (arrows,) = ax.collections
        corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
        np.testing.assert_allclose(np.column_stack((arrows.X, arrows.Y)), corners, atol=1e-12)
        centre = corners.mean(axis=0)
        np.testing.assert_allclose(np.column_stack((arrows.U, arrows.V)), centre - corners, atol=1e-12)

    def test_interpretation_points_are_drawn_with_their_images(self):
        ax = plots.simplex_map(SIMPLEX, SIMPLEX, classes="abc", interpretation=(SIMPLEX, SIMPLEX[::-1])).axes[0]
        tail, tip = ax.collections[-2:]
        np.testing.assert_allclose(tail.get_offsets(), tip.get_offsets()[::-1])

    def test_long_labels_are_cut(self):
        ax = plots.simplex_map(SIMPLEX, SIMPLEX, classes=["a", "b", "a name that runs on and on"]).axes[0]
        assert "a name that r…" in [text.get_text() for text in ax.texts]


class TestMatrices:
    def test_numbers_marks_and_reference(self):
        values = np.array([[1.0, -0.25], [-0.001, np.nan]])
        marks = np.array([["", "*"], ["", ""]])
        ax = plots.matrix_heatmap(
            values, rows="ab", columns="ab", marks=marks, reference=np.eye(2), label="departure"
        ).axes[0]
        assert [text.get_text() for text in ax.texts] == ["1.00", "−0.25*", "0.00", "–"]
        np.testing.assert_array_equal(ax.images[0].get_array().filled(np.nan), values - np.eye(2))
        assert ax.images[0].get_clim() == (-1.0 + 0.75, 0.25)

    def test_a_matrix_without_negative_cells_gets_the_one_sided_colours(self):
        image = plots.matrix_heatmap([[1.0, 0.0], [0.2, 2.0]], rows="ab", columns="ab").axes[0].images[0]
        assert image.get_cmap().name == "calstat_sequential"
        assert image.get_clim() == (0.0, 2.0)

    @pytest.mark.parametrize(("size", "numbers", "labels"), [(2, 4, 2), (12, 144, 12), (13, 0, 13), (100, 0, 34)])
    def test_numbers_and_labels_stay_readable(self, size, numbers, labels):
        names = [f"c{i}" for i in range(size)]
        ax = plots.matrix_heatmap(np.eye(size), rows=names, columns=names).axes[0]
        assert len(ax.texts) == numbers
        assert len(ax.get_yticks()) == labels

    def test_all_zero_matrix(self):
        ax = plots.matrix_heatmap(np.zeros((2, 2)), rows="ab", columns="ab").axes[0]
        assert ax.images[0].get_clim() == (0.0, 1.0)

    def test_text_on_every_colour_has_contrast(self):
        values = np.linspace(-1, 1, 9)[None, :]
        ax = plots.matrix_heatmap(values, rows=["r"], columns=list("abcdefghi")).axes[0]
        image = ax.images[0]
        for text, value in zip(ax.texts, values[0], strict=True):
            ratio = contrast(text.get_color(), image.cmap(image.norm(value))[:3])
            assert ratio > 4.5

    def test_confusion_change(self):
        ax = plots.confusion_change([[8, 2], [1, 9]], [[9, 1], [1, 9]], classes=["a", "b"]).axes[0]
        np.testing.assert_array_equal(ax.images[0].get_array(), [[1, -1], [0, 0]])
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("Predicted class", "Observed class")


class TestDistributions:
    def test_histogram_counts_all_finite_values(self):
        values = np.r_[np.linspace(0, 1, 500), np.nan]
        ax = plots.null_distribution(values, 1.5, expected=0.5, label="ECE", title="p = 0.002").axes[0]
        assert sum(patch.get_height() for patch in ax.patches) == 500
        assert [line.get_xdata()[0] for line in ax.lines] == [0.5, 1.5]
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert labels == ["under the null", "expected 0.5", "observed 1.5"]

    def test_no_interval_where_there_is_none(self):
        ax = plots.bootstrap_distribution([0.1, 0.2], 0.1, np.nan, np.nan).axes[0]
        assert not any("interval" in text.get_text() for text in ax.get_legend().get_texts())
        ax = plots.bootstrap_distribution([0.1, 0.2], 0.1, 0.05, 0.3).axes[0]
        assert "interval [0.05, 0.3]" in [text.get_text() for text in ax.get_legend().get_texts()]


class TestComparison:
    def test_penalty_path_places_zero_left_of_the_rest(self):
        ax = plots.penalty_path([1e-2, 0.0, 1e-3], [0.5, 0.7, 0.6], [0.01] * 3, chosen=0.0).axes[0]
        line = ax.lines[0]
        np.testing.assert_allclose(line.get_xdata(), [-4.0, -3.0, -2.0])
        np.testing.assert_array_equal(line.get_ydata(), [0.7, 0.6, 0.5])
        assert [text.get_text() for text in ax.get_xticklabels()] == ["0", "$10^{-3}$", "$10^{-2}$"]
        assert ax.lines[-1].get_xdata()[0] == -4.0

    def test_long_paths_have_few_ticks(self):
        strength = 10.0 ** np.arange(3, -8, -1)
        ax = plots.penalty_path(strength, np.ones((2, 11)), np.ones((2, 11)), series=["a", "b"]).axes[0]
        assert len(ax.get_xticks()) <= 8
        assert len(ax.get_legend().get_texts()) == 2

    @pytest.mark.parametrize(
        ("ranks", "distance", "bars"),
        [
            ([1.0, 2.0, 3.0], 0.5, []),
            ([1.0, 2.0, 3.0], 5.0, [(1.0, 3.0)]),
            # Runs that overlap are both shown, a run inside a longer one is not.
            ([3.0, 1.0, 2.0, 4.0], 2.0, [(1.0, 3.0), (2.0, 4.0)]),
        ],
    )
    def test_bars_join_what_cannot_be_told_apart(self, ranks, distance, bars):
        names = [f"method {i}" for i in range(len(ranks))]
        ax = plots.critical_difference(ranks, names, distance).axes[0]
        drawn = [
            (line.get_xdata()[0] + 0.03, line.get_xdata()[1] - 0.03)
            for line in ax.lines
            if line.get_color() == _style.BLUE
        ]
        np.testing.assert_allclose(np.reshape(drawn, (-1, 2)), np.reshape(bars, (-1, 2)))
        shown = " ".join(text.get_text() for text in ax.texts)
        assert all(name in shown for name in names)
        assert f"{distance:.2f}" in shown


def luminance(colour: object) -> float:
    channels = np.array(to_rgb(colour))
    linear = np.where(channels <= 0.03928, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(first: object, second: object) -> float:
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_two_main_colours_are_seen_on_white_and_the_diverging_ends_differ_in_grey():
    assert min(contrast(colour, "white") for colour in (_style.BLUE, _style.ORANGE, _style.GREY)) > 3.0
    ends = luminance(_style.DIVERGING(0.0)), luminance(_style.DIVERGING(1.0))
    assert contrast(_style.DIVERGING(0.0), _style.DIVERGING(1.0)) > 2.5, ends


@pytest.mark.parametrize("name", sorted(CALLS))
@pytest.mark.parametrize("size", [(1.6, 1.6), (3.0, 2.4), (7.0, 5.0)])
def test_no_text_leaves_the_figure(name, size):
    figure, ax = plt.subplots(figsize=size, layout="compressed")
    CALLS[name](ax)
    figure.draw_without_rendering()
    box = figure.bbox
    slack = 0.02 * box.width + 1.0
    unseen = {
        id(tick.label1)
        for part in figure.findobj(mpl.axes.Axes)
        for axis in (part.xaxis, part.yaxis)
        for tick in axis.get_major_ticks()
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    texts = [text for text in figure.findobj(mpl.text.Text) if text.get_visible() and text.get_text()]
    assert texts
    for text in texts:
        if id(text) in unseen:
            continue
        extent = text.get_window_extent()
        assert extent.x0 > box.x0 - slack, text
        assert extent.x1 < box.x1 + slack, text
        assert extent.y0 > box.y0 - slack, text
        assert extent.y1 < box.y1 + slack, text
