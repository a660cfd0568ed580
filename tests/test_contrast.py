"""Text can be read on its background: a contrast of 4.5 and more, as WCAG 2.1 (AA) asks for text of ordinary size.

Contrast is (a + 0.05) / (b + 0.05) with the relative luminances a > b of the two colours.
"""

from __future__ import annotations

import re
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb, to_rgba

from calstat import plots
from calstat._report import html

ENOUGH = 4.5


def contrast(first: object, second: object) -> float:
    """WCAG contrast of two opaque colours."""
    channels = np.array([to_rgb(first), to_rgb(second)])  # type: ignore[arg-type]
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return float((high + 0.05) / (low + 0.05))


def over_white(colour: object) -> tuple[float, ...]:
    """The opaque colour that a translucent one makes on white."""
    *rgb, alpha = to_rgba(colour)  # type: ignore[arg-type]
    return tuple(alpha * c + 1 - alpha for c in rgb)


def test_contrast_agrees_with_known_values() -> None:
    assert contrast("black", "white") == pytest.approx(21.0)  # the largest there is, by definition
    assert contrast("#767676", "white") == pytest.approx(
        4.54, abs=0.005
    )  # the lightest grey that passes, by WCAG's tools


def test_text_of_the_web_page_stands_out() -> None:
    style = html._STYLE
    variables = dict(re.findall(r"--(\w+): (#\w+)", style))
    texts = re.findall(r"[^-]color: ([^;}]+)", style)
    grounds = re.findall(r"background: ([^;}]+)", style)
    inks, papers = (
        {variables.get(c.removeprefix("var(--").rstrip(")"), c) for c in group if c != "none"}
        for group in (texts, grounds)
    )
    assert len(inks) >= 2
    assert len(papers) >= 2
    for ink, paper in product(inks, papers):
        assert contrast(ink, paper) >= ENOUGH, (ink, paper)


def test_numbers_in_heat_maps_stand_out_from_their_cells() -> None:
    """Cells of every shade, both ends and the middle of the scale included."""
    shades = np.linspace(-1.0, 1.0, 49).reshape(7, 7)
    names = list("abcdefg")
    figures = [
        plots.matrix_heatmap(shades, rows=names, columns=names),
        plots.matrix_heatmap(shades + 1.0, rows=names, columns=names),
        plots.confusion_change(np.zeros((7, 7)), np.round(100 * shades), classes=names),
    ]
    looked_at = 0
    for figure in figures:
        figure.canvas.draw()
        for ax in figure.axes:
            for image in ax.images:
                for text in ax.texts:
                    column, row = text.get_position()
                    shade = image.to_rgba(image.get_array())[int(row), int(column)]
                    assert contrast(text.get_color(), over_white(shade)) >= ENOUGH, (text.get_text(), shade)
                    looked_at += 1
        plt.close(figure)
    assert looked_at == 3 * 49


def test_other_text_of_pictures_is_in_the_colour_of_the_user() -> None:
    """Titles, labels and legends take matplotlib's text colour, black on white unless the user chose otherwise."""
    edges = np.linspace(0.0, 1.0, 4)
    figure = plots.reliability(edges[1:] - 0.1, edges[1:] - 0.2)
    figure.canvas.draw()
    for ax in figure.axes:
        for text in [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels()]:
            assert contrast(text.get_color(), over_white(ax.get_facecolor())) >= ENOUGH
    plt.close(figure)
