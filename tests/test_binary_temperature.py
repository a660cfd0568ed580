"""Temperature scaling of a binary outcome: labels, columns and prints as those of the other binary maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import calstat as cs
from calstat.exceptions import DataWarning, InputError, LabelError

SNAPSHOT = Path(__file__).parent / "snapshots" / "summary_softmax_temperature_binary.txt"


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    p = rng.beta(1.2, 1.6, size=300)
    ill = rng.random(300) < 1.0 / (1.0 + ((1.0 - p) / p) ** 0.7)
    return pd.DataFrame(
        {"y": np.where(ill, "ill", "well"), "p_ill": p, "p_well": 1.0 - p, "age": rng.integers(20, 80, 300)}
    )


def fit(table: pd.DataFrame, scores: Any, **options: Any) -> Any:
    return cs.TemperatureScaling(table["y"], scores, scores="probability", **options).fit()


def test_event_and_summary(table: pd.DataFrame) -> None:
    res = cs.TemperatureScaling.from_formula("y ~ p_ill", table, scores="probability", event="ill").fit()
    assert (res.event, res.nonevent) == ("ill", "well")
    text = str(res.summary())
    assert text.rstrip() == SNAPSHOT.read_text(encoding="utf-8").rstrip()
    assert "Event:" in text
    assert "Classes" not in text
    # One slope through the origin on the log odds is 1 / T: an independent fit of the same map.
    beta = cs.BetaCalibration(table["y"], table["p_ill"], event="ill", parameters="a").fit()
    assert np.isclose(res.temperature, 1.0 / beta.params["a"], rtol=1e-9)
    assert np.isclose(res.llf, beta.llf, rtol=1e-12)


def test_labels(table: pd.DataFrame) -> None:
    res = fit(table, table["p_ill"], event="ill")
    with pytest.raises(LabelError, match="Pass event="):
        fit(table, table["p_ill"])
    with pytest.raises(LabelError, match="`event` is 'dead'"):
        fit(table, table["p_ill"], event="dead")
    levels = table.assign(y=pd.Categorical(table["y"], categories=["well", "ill"]))
    by_level = fit(levels, table["p_ill"])
    assert (by_level.event, by_level.temperature) == ("ill", res.temperature)
    other = fit(table, table["p_well"], event="well")
    assert other.event == "well"
    assert np.isclose(other.temperature, res.temperature, rtol=1e-12)
    numbers = fit(table.assign(y=(table["y"] == "ill").astype(int)), table["p_ill"])
    assert (numbers.event, numbers.nonevent, numbers.temperature) == (1, 0, res.temperature)
    assert "1 (against 0)" in str(numbers.summary())


@pytest.mark.parametrize("names", [["p_well", "p_ill"], ["p_ill", "p_well"]])
def test_two_columns(table: pd.DataFrame, names: list[str]) -> None:
    """The event's column is found by name, in the fit and in every new table."""
    one = fit(table, table["p_ill"], event="ill")
    res = fit(table, table[names], event="ill")
    assert (res.event, res.temperature) == ("ill", one.temperature)
    expected = one.predict(table["p_ill"]).to_numpy()
    np.testing.assert_array_equal(res.fittedvalues, expected)
    for new in (table[names], table[names[::-1]], table):
        both = res.predict(new)
        assert sorted(both.columns) == ["p_ill", "p_well"]
        np.testing.assert_allclose(both["p_ill"], expected, atol=1e-15)
        np.testing.assert_allclose(both["p_well"], 1.0 - expected, atol=1e-15)
    np.testing.assert_allclose(res.predict(table["p_ill"].to_numpy()), expected, atol=1e-15)
    assert res.predict(table[["p_ill"]].to_numpy()).shape == (300, 1)
    plain = res.predict(table[["p_well", "p_ill"]].to_numpy())
    np.testing.assert_allclose(plain[:, 1], expected, atol=1e-15)
    assert "p_ill (probabilities)" in str(res.summary())


def test_two_columns_of_logits(table: pd.DataFrame) -> None:
    one = fit(table, table["p_ill"], event="ill")
    z = np.log(table[["p_well", "p_ill"]].to_numpy()) + 5.0
    res = cs.TemperatureScaling(table["y"], z, event="ill").fit()
    assert np.isclose(res.temperature, one.temperature, rtol=1e-9)
    np.testing.assert_allclose(res.predict(z)[:, 1], one.fittedvalues, atol=1e-12)


def test_without_event_two_columns_are_two_classes(table: pd.DataFrame) -> None:
    pair = fit(table, table[["p_ill", "p_well"]])
    assert pair.classes == ("ill", "well")
    assert pair.event is None
    assert pair.nonevent is None
    assert np.isclose(pair.temperature, fit(table, table["p_ill"], event="ill").temperature, rtol=1e-9)
    with pytest.raises(InputError, match=r"`event` goes with one score, or two columns; `p` has 3"):
        cs.TemperatureScaling([0, 1, 2], np.eye(3), event=1)


def test_storage(table: pd.DataFrame) -> None:
    for scores in (table["p_ill"], table[["p_ill", "p_well"]]):
        res = fit(table, scores, event="ill")
        same = cs.from_json(res.to_json())
        assert (same.event, same.nonevent) == ("ill", "well")
        assert str(same.summary()) == str(res.summary())
        np.testing.assert_array_equal(same.predict(scores), res.predict(scores))


@pytest.mark.parametrize("model", [cs.LogisticCalibration, cs.BetaCalibration, cs.PlattScaling])
def test_other_binary_maps_find_the_column_in_wider_tables(table: pd.DataFrame, model: Any) -> None:
    """Whatever else a table holds, and in whatever order, the event's column is the one of its name."""
    options = {} if model is not cs.PlattScaling else {"scores": "probability"}
    res = model(table["y"], table[["p_ill", "p_well"]], event="ill", **options).fit()
    swapped = model(table["y"], table[["p_well", "p_ill"]], event="ill", **options).fit()
    assert str(swapped.summary()) == str(res.summary())
    expected = res.fittedvalues.to_numpy()
    for new in (table[["p_ill", "p_well"]], table[["p_well", "p_ill"]], table):
        both = res.predict(new)
        np.testing.assert_allclose(both["p_ill"], expected, atol=1e-15)
        np.testing.assert_allclose(both["p_well"], 1.0 - expected, atol=1e-15)
    np.testing.assert_allclose(res.predict(table["p_ill"].to_numpy()), expected, atol=1e-15)


def test_a_single_class_is_told() -> None:
    with pytest.warns(DataWarning, match="every outcome is 0"):
        cs.TemperatureScaling([0, 0, 0, 0], [-1.0, 0.5, 1.0, -2.0]).fit()
