"""Which column is whose: by its name where it bears one, by its place where names say nothing, and never in doubt."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import calstat as cs
from calstat.exceptions import InputError, LabelError

RNG = np.random.default_rng(0)
N = 400
P = RNG.random(N)
EVENT = RNG.random(N) < P**2
TEXT = np.where(EVENT, "a", "b")
WANTED = cs.ece(EVENT, P)


def table(*names, first=P):
    return pd.DataFrame({names[0]: first, names[1]: 1 - first})


@pytest.mark.parametrize(
    ("y", "names", "event"),
    [
        (EVENT, ("p_1", "p_0"), None),
        (EVENT, (1, 0), None),
        (EVENT, ("p_true", "p_false"), None),
        (EVENT.astype(int), ("True", "False"), None),
        (EVENT.astype(int), (True, False), None),
        (np.where(EVENT, "Yes", "No"), ("p_yes", "p_no"), "Yes"),
        (TEXT, ("a_prob", "b_prob"), "a"),
        (TEXT, ("p a", "p b"), "a"),
        (np.where(EVENT, 1, 2), ("p1", "p2"), 1),
    ],
)
def test_columns_are_found_by_the_labels_that_they_are_named_after(y, names, event) -> None:
    for frame in (table(*names), table(*names).iloc[:, ::-1]):
        assert cs.ece(y, frame, event=event) == pytest.approx(WANTED)
        for model in (cs.LogisticCalibration, cs.IsotonicCalibration, cs.HistogramBinning, cs.TemperatureScaling):
            options = {"scores": "probability"} if model is cs.TemperatureScaling else {}
            result = model(y, frame, event=event, **options).fit()
            alone = model(y, P, event=event, **options).fit().predict(P)
            predicted = result.predict(frame)
            place = list(frame.columns).index(names[0])
            np.testing.assert_allclose(predicted.iloc[:, place], alone, rtol=1e-6)
            np.testing.assert_allclose(predicted.sum(axis=1), 1)
            assert model is cs.TemperatureScaling or f"{names[0]} (" in str(result.summary())


def test_names_that_say_nothing_leave_the_second_column_to_the_event() -> None:
    frame = table("x", "z", first=1 - P)
    assert cs.ece(TEXT, frame, event="a") == pytest.approx(WANTED)
    assert cs.ece(TEXT, frame, classes=["b", "a"]) == pytest.approx(WANTED)
    assert cs.metrics.accuracy(TEXT, frame, classes=["b", "a"]) == np.mean((P > 0.5) == EVENT)
    for model in (cs.LogisticCalibration, cs.BetaCalibration, cs.IsotonicCalibration):
        result = model(TEXT, frame, event="a").fit()
        alone = model(TEXT, P, event="a").fit().predict(P)
        np.testing.assert_allclose(result.predict(frame)["z"], alone, rtol=1e-6)
        np.testing.assert_allclose(result.predict(frame.to_numpy())[:, 1], alone, rtol=1e-6)
        assert "z (" in str(result.summary())


def test_classes_that_contradict_the_names_are_refused() -> None:
    frame = table("p_a", "p_b")
    assert cs.ece(TEXT, frame, classes=["a", "b"], event="a") == pytest.approx(WANTED)
    with pytest.raises(LabelError, match="columns of `p` are named"):
        cs.ece(TEXT, frame, classes=["b", "a"])


def test_classes_are_matched_without_regard_to_case() -> None:
    P3 = RNG.dirichlet([1, 1, 1], N)
    labels = np.array(["Van", "Bus", "Opel"])[(RNG.random((N, 1)) > np.cumsum(P3, axis=1)[:, :-1]).sum(axis=1)]
    wanted = cs.log_loss(labels, P3, classes=["Van", "Bus", "Opel"])
    assert cs.log_loss(labels, pd.DataFrame(P3, columns=["p_van", "p_bus", "p_opel"])) == pytest.approx(wanted)
    few = np.where(labels == "Opel", "Bus", labels)
    assert cs.log_loss(few, pd.DataFrame(P3, columns=["p_Van", "p_Bus", "p_Opel"])) > 0  # a class may not occur


def test_numbers_of_columns_in_an_odd_order_are_refused() -> None:
    P3 = RNG.dirichlet([1, 1, 1], N)
    y = RNG.integers(0, 3, N)
    with pytest.raises(LabelError, match="match some labels"):
        cs.log_loss(y, pd.DataFrame(P3, columns=[3, 1, 2]))
    assert cs.log_loss(y + 1, pd.DataFrame(P3)) == cs.log_loss(y, P3)


def test_two_columns_of_one_name_are_refused() -> None:
    P3 = RNG.dirichlet([1, 1, 1], N)
    with pytest.raises(InputError, match="two columns of the same name"):
        cs.log_loss(RNG.integers(0, 3, N), pd.DataFrame(P3, columns=["a", "a", "b"]))
