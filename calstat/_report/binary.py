"""The report on binary predictions: computed with the metrics and tests that it names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from calstat._input.validation import BinarySample, positive_weight_rows
from calstat._report.models import SideBySide
from calstat._report.options import BATTERY_ROWS, ERROR_COLUMNS, Options, bins_text, remarks
from calstat._report.result import CalibrationReport
from calstat._report.words import Facts, findings, short
from calstat._results import CalibrationTest, format_count
from calstat._typing import FloatArray
from calstat.diagnostics import (
    CalibrationByGroup,
    calibration_tests,
    hosmer_lemeshow,
    recalibration_test,
    spiegelhalter,
    val_prob,
)
from calstat.metrics import bootstrap, ece, evaluate, pseudo_label_test, reliability_table, squared_ece
from calstat.metrics._scores import LOG_EPS, log_rows
from calstat.reliability import binary_panel, error_title

_SECTIONS = (
    ("Calibration", ("O/E", "Intercept (slope 1)", "Intercept", "Slope")),
    (
        "Scores and discrimination",
        ("Brier", "MCB", "DSC", "UNC", "Brier scaled", "Log loss", "C (ROC)", "Dxy", "R2", "D", "U", "Q"),
    ),
)
_ERRORS = {
    "ECE": "ece",
    "ECE², unbiased": "squared_ece",
    "ACE": "ace",
    "MCE": "mce",
    "ICI": "ici",
    "E50": "e50",
    "E90": "e90",
    "Emax": "emax",
}
# A smoothed curve takes long to draw many times; its p-value is then known to a hundredth or two.
_SMOOTHED_ROWS = 5000
_SMOOTHED_DRAWS = 199
_NOTES = (
    "Everything here takes the predictions as given: not fitted on these rows, and the rows independent.",
    (
        "Intercept (slope 1) is calibration in the large: the shift of the predictions on the logit scale with the "
        "slope fixed at 1. Intercept is the joint one, estimated together with the slope: the shift at p = 1/2."
    ),
    (
        "D, U and Q measure log-likelihood per row: D of the predictions over the event rate, U lost by miscalibration "
        "that intercept and slope could mend, Q = D - U. R2 is Nagelkerke's, of the predictions as they are. Brier "
        "scaled is 1 - Brier / (rate (1 - rate))."
    ),
    (
        "Brier = MCB - DSC + UNC: miscalibration, discrimination and uncertainty by the isotonic fit (CORP). MCB is "
        "above zero in any sample, however good the predictions."
    ),
    (
        "ECE weighs the gaps between observed and predicted in the bins by their rows, ACE weighs the bins equally, "
        "MCE is the largest gap. ECE², unbiased, is the mean squared gap with its noise taken off; it may be negative. "
        "Expected is the mean under calibration: labels drawn anew from the predictions. The interval allows for the "
        "upward bias of binned errors and may end below the estimate."
    ),
    (
        "ICI, E50, E90 and Emax are mean, median, 90% quantile and maximum of the distance between the predictions and "
        "a smooth curve: lowess, span 2/3, no robustness iterations, on the probability scale. Other smoothers give "
        "other values, often by half."
    ),
    (
        "p (Holm) allows for the number of tests in its table; the tests do not ask the same question, and not each of "
        "them can see every kind of miscalibration. calibration_tests says what each can see."
    ),
)


def binary_report(
    sample: BinarySample, options: Options, beside: SideBySide | None, groups: CalibrationByGroup | None
) -> CalibrationReport:
    """Compute the report on binary predictions."""
    sample = positive_weight_rows(sample)
    values: dict[str, Any] = {"y": sample.y, "p": sample.p, "freq_weights": sample.weights, "event": 1.0}
    plain = evaluate(**values, **options.binned)["value"]
    indexes = _indexes(sample, values, plain, options)
    errors = _errors(values, plain, options, sample.nobs)
    tests = _tests(sample, values, options)
    estimate, low, high, _, pvalue = errors.loc[["ECE"]].to_numpy(dtype=float)[0]
    heading = error_title("ECE", estimate, (low, high), pvalue, options.alpha)
    generator = np.random.default_rng(options.seed)
    table = reliability_table(**values, **options.binned, alpha=options.alpha)
    events = _total(sample.y, sample.weights)
    facts = Facts(
        indexes=indexes,
        errors=errors,
        logistic=tests[1],
        events=events,
        nonevents=sample.nobs - events,
        alpha=options.alpha,
        groups=None if groups is None else groups.test,
    )
    apart = () if groups is None else (groups.test,)
    return CalibrationReport(
        title=options.title,
        data=_description(sample, table, options),
        indexes=indexes,
        sections=_SECTIONS,
        errors=errors,
        tests=tests,
        bins=table,
        findings=findings(facts),
        notes=(*_NOTES, *remarks(sample.notes, (*tests, *apart))),
        panel=binary_panel(sample.y, sample.p, sample.weights, options.look, generator, heading),
        alpha=options.alpha,
        models=beside,
        groups=groups,
    )


def _tests(sample: BinarySample, values: dict[str, Any], options: Options) -> tuple[CalibrationTest, ...]:
    """Run the battery; only the tests that are quick where the others would take minutes."""
    if sample.nobs <= BATTERY_ROWS:
        battery = calibration_tests(**values, **options.drawn)
        # The test of the ECE has its own place among the errors, on the bins of the report.
        return tuple(test for test in battery if test.name != "Pseudo-label test")
    return (
        *(
            recalibration_test(**values, against=against, rng=options.seed)
            for against in ("in_the_large", "logistic", "beta")
        ),
        spiegelhalter(**values),
        hosmer_lemeshow(**values, rng=options.seed),
    )


def _total(values: FloatArray, weights: FloatArray | None) -> float:
    return float(values.sum() if weights is None else values @ weights)


def _description(sample: BinarySample, table: pd.DataFrame, options: Options) -> tuple[tuple[str, str], ...]:
    """Describe the data in names and texts."""
    p, n = sample.p, sample.nobs
    events = _total(sample.y, sample.weights)
    entries = [
        ("Outcome", options.outcome),
        ("Predictions", options.predictions),
        ("Observations", format_count(n)),
        ("Event", str(sample.event)),
        ("Events", f"{format_count(events)} ({100 * events / n:.1f}%)"),
        ("Mean prediction", short(_total(p, sample.weights) / n)),
        ("Range of predictions", f"{short(float(p.min()))} to {short(float(p.max()))}"),
        ("Distinct predictions", f"{np.unique(p).size}"),
        ("Predictions of 0 / of 1", f"{int((p == 0).sum())} / {int((p == 1).sum())}"),
        ("Bins", bins_text(len(table), options)),
        ("Intervals", f"{100 * (1 - options.alpha):g}%"),
    ]
    if sample.weights is not None:
        entries.insert(3, ("Rows", f"{p.size}, weighted"))
    return tuple(entries)


def _indexes(sample: BinarySample, values: dict[str, Any], plain: pd.Series, options: Options) -> pd.DataFrame:
    """Join the log loss and the parts of the Brier score to the validation indexes."""
    frame = val_prob(**values, alpha=options.alpha)
    frame.loc["Log loss"] = options.mean_row(log_rows(sample, LOG_EPS), sample.weights, (0.0, np.inf))
    for name in ("MCB", "DSC", "UNC"):
        frame.loc[name] = [plain[name], np.nan, np.nan, np.nan]
    return frame


def _errors(values: dict[str, Any], plain: pd.Series, options: Options, nobs: float) -> pd.DataFrame:
    """Collect calibration errors with what can be said of their sureness."""
    frame = pd.DataFrame(np.nan, index=list(_ERRORS), columns=list(ERROR_COLUMNS))
    frame["estimate"] = [plain.get(name, np.nan) for name in _ERRORS.values()]
    frame.loc["ECE², unbiased", "estimate"] = squared_ece(**values, **options.binned, debias="u")
    low, high = bootstrap(ece, **values, **options.binned, **options.drawn).conf_int(options.alpha)
    frame.loc["ECE", ["ci_low", "ci_high"]] = low, high
    tested = dict.fromkeys(("ECE", "ACE", "MCE"), options.drawn)
    if nobs <= _SMOOTHED_ROWS:
        tested["ICI"] = {"n_resamples": min(options.look.n_resamples, _SMOOTHED_DRAWS), "rng": options.seed}
    for name, drawn in tested.items():
        binned = {} if name == "ICI" else options.binned
        test = pseudo_label_test(**values, statistic=_ERRORS[name], **binned, **drawn)
        frame.loc[name, ["expected", "pvalue"]] = test.expected, test.pvalue
    return frame


__all__ = ["binary_report"]
