"""What the numbers of a report say, in plain sentences, and never more than they say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from calstat._results import CalibrationTest, format_count, format_pvalue

# Below this many events or non-events external validation is known to miss relevant miscalibration
# (Vergouwe et al. 2005, doi:10.1016/j.jclinepi.2004.06.017).
_FEW = 100
# Differences of sums that are equal but for rounding.
_ROUNDING = 1e-12
_MOST_NAMED = 6
_POSSIBLE = (
    "A test that finds nothing does not show that the predictions are calibrated; the intervals say what remains "
    "possible. With many rows a test may find what does not matter."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the sentences are made of: the tables of a report, some of its tests, and the size of the data.

    `indexes` has columns estimate, se, ci_low, ci_high; `errors` has estimate, ci_low, ci_high, expected, pvalue.
    """

    indexes: pd.DataFrame
    errors: pd.DataFrame
    logistic: CalibrationTest
    events: float
    nonevents: float
    alpha: float
    groups: CalibrationTest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MulticlassFacts:
    """What the sentences about several classes are made of: the tables of their report."""

    indexes: pd.DataFrame
    errors: pd.DataFrame
    classes: pd.DataFrame
    alpha: float


def short(value: float) -> str:
    """Write a number with three significant digits."""
    if not np.isfinite(value):
        return "not defined"
    if abs(value) < _ROUNDING:
        return "0"
    if abs(value) >= 1000.0:
        return f"{value:.0f}"
    return f"{value:#.3g}".rstrip(".")


def findings(facts: Facts) -> tuple[str, ...]:
    """Return the sentences, the coarsest question first."""
    sentences = (
        _on_average(facts),
        _spread(facts),
        _together(facts),
        _error(facts, "ECE", "in the bins"),
        _groups(facts),
        _ranking(facts),
        _caution(facts),
    )
    return tuple(sentence for sentence in sentences if sentence)


def multiclass_findings(facts: MulticlassFacts) -> tuple[str, ...]:
    """Return the sentences about several classes, the coarsest question first."""
    sentences = (
        _confidence(facts),
        _error(facts, "Confidence ECE", "of the most probable class"),
        _error(facts, "Classwise ECE", "of all classes"),
        _worst_classes(facts),
        _POSSIBLE,
    )
    return tuple(sentence for sentence in sentences if sentence)


def _confidence(facts: MulticlassFacts) -> str:
    accuracy, confidence = (facts.indexes["estimate"][name] for name in ("Accuracy", "Mean confidence"))
    _, low, high, text = _estimate(facts, "Confidence - accuracy")
    said = (
        f"The most probable class is right in {100 * accuracy:.1f}% of rows; its mean probability is "
        f"{100 * confidence:.1f}%"
    )
    if low > 0.0:
        verdict = "the predictions are over-confident on average"
    elif high < 0.0:
        verdict = "the predictions are under-confident on average"
    else:
        verdict = "no evidence of over- or under-confidence on average"
    return f"{said}: {verdict} (difference {text}; 0 if calibrated)."


def _worst_classes(facts: MulticlassFacts) -> str:
    frame = facts.classes
    found = frame.index[(frame["pvalue_holm"] < facts.alpha).to_numpy()]
    if not len(found):
        return "By class, no class shows evidence of miscalibration after Holm's correction for looking at all of them."
    worst = frame.loc[found].sort_values("ece", ascending=False).index
    listed = ", ".join(str(name) for name in worst[:_MOST_NAMED])
    more = f" and {len(worst) - _MOST_NAMED} more" if len(worst) > _MOST_NAMED else ""
    return f"By class, after Holm's correction there is evidence against calibration for {listed}{more}."


def _estimate(facts: Facts | MulticlassFacts, name: str) -> tuple[float, float, float, str]:
    """Return the estimate and limits of an index, and both as text."""
    value, low, high = facts.indexes.loc[[name], ["estimate", "ci_low", "ci_high"]].to_numpy(dtype=float)[0]
    level = f"{100 * (1 - facts.alpha):g}%"
    # An interval without width says that its formula failed, not that the value is known.
    limits = f", {level} interval {short(low)} to {short(high)}" if low < high else ""
    return value, low, high, f"{short(value)}{limits}"


def _on_average(facts: Facts) -> str:
    _, low, high, text = _estimate(facts, "O/E")
    if min(facts.events, facts.nonevents) == 0:
        return "One of the two outcomes does not occur, so that most questions about calibration have no answer here."
    if low > 1.0:
        return f"The event is more frequent than predicted: observed over expected {text}; 1 if calibrated."
    if high < 1.0:
        return f"The event is less frequent than predicted: observed over expected {text}; 1 if calibrated."
    return (
        f"No evidence that the predictions are too high or too low on average: observed over expected {text}; "
        "1 if calibrated."
    )


def _spread(facts: Facts) -> str:
    _, low, high, text = _estimate(facts, "Slope")
    if not np.isfinite([low, high]).all():
        return "The slope is not determined by these data."
    if high < 1.0:
        return f"The predictions are too extreme, on the logit scale: slope {text}; 1 if calibrated."
    if low > 1.0:
        return f"The predictions are not extreme enough, on the logit scale: slope {text}; 1 if calibrated."
    return f"No evidence that the predictions are too extreme or not extreme enough: slope {text}; 1 if calibrated."


def _together(facts: Facts) -> str:
    test = facts.logistic
    if not np.isfinite(test.pvalue):
        return ""
    against = "evidence against" if test.pvalue < facts.alpha else "no evidence against"
    return f"Intercept and slope together: {against} calibration (p {_equals(test.pvalue)})."


def _error(facts: Facts | MulticlassFacts, name: str, whose: str) -> str:
    """Say how large an error is beside what calibrated predictions would show."""
    columns = ["estimate", "expected", "pvalue"]
    estimate, expected, pvalue = facts.errors.loc[[name], columns].to_numpy(dtype=float)[0]
    if not np.isfinite(pvalue):
        return ""
    verdict = "more than chance would give" if pvalue < facts.alpha else "no more than chance may give"
    return (
        f"The expected calibration error (ECE) {whose} is {short(estimate)}. Calibrated predictions would show "
        f"{short(expected)} on average on data of this size; what was found is {verdict} (p {_equals(pvalue)})."
    )


def _groups(facts: Facts) -> str:
    if facts.groups is None or not np.isfinite(facts.groups.pvalue):
        return ""
    found = "evidence" if facts.groups.pvalue < facts.alpha else "no evidence"
    return f"Between groups: {found} that their calibration differs (p {_equals(facts.groups.pvalue)})."


def _ranking(facts: Facts) -> str:
    value, _, _, text = _estimate(facts, "C (ROC)")
    if not np.isfinite(value):
        return ""
    useless = bool((facts.indexes.loc[["Brier scaled"], "estimate"] < 0.0).any())
    scaled = " Their Brier score is worse than that of one constant prediction, the event rate." if useless else ""
    return (
        f"Of two rows, one with the event and one without, the one with the event has the higher prediction in "
        f"{100 * value:.0f}% of cases (C = {text}). That is discrimination; it says nothing about calibration.{scaled}"
    )


def _caution(facts: Facts) -> str:
    fewest = min(facts.events, facts.nonevents)
    if fewest < _FEW:
        kind = ("event" if facts.events <= facts.nonevents else "non-event") + ("" if fewest == 1 else "s")
        return (
            f"With {format_count(fewest)} {kind} only large miscalibration can be seen: read the intervals. A test "
            "that finds nothing does not show that the predictions are calibrated."
        )
    return _POSSIBLE


def _equals(pvalue: float) -> str:
    text = format_pvalue(pvalue)
    return text.replace("<", "< ") if text.startswith("<") else f"= {text}"


__all__ = ["Facts", "MulticlassFacts", "findings", "multiclass_findings", "short"]
