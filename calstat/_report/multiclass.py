"""The report on predictions for several classes."""

from __future__ import annotations

from dataclasses import replace
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd

from calstat._arrays.binning import top_label
from calstat._inference_results import PseudoLabelTest
from calstat._input.validation import MulticlassSample
from calstat._report.options import BATTERY_ROWS, ERROR_COLUMNS, Options, bins_text, remarks
from calstat._report.result import CalibrationReport
from calstat._report.words import MulticlassFacts, multiclass_findings, short
from calstat._results import CalibrationTest, format_count
from calstat.diagnostics import calibration_tests, hosmer_lemeshow, recalibration_test
from calstat.metrics import bootstrap, ece, evaluate, pseudo_label_test, reliability_table
from calstat.metrics._scores import LOG_EPS, brier_rows, log_rows
from calstat.reliability import binary_panel, class_panels, error_title

_SECTIONS = (("Scores", ("Accuracy", "Mean confidence", "Confidence - accuracy", "Brier", "Log loss")),)
_ERRORS = {
    "Confidence ECE": "ece[confidence]",
    "Classwise ECE": "ece[classwise]",
    "Confidence MCE": "mce[confidence]",
    "Classwise MCE": "mce[classwise]",
    "MMCE": "mmce",
}
_LONGEST_LIST = 200
_NOTES = (
    "Everything here takes the predictions as given: not fitted on these rows, and the rows independent.",
    "Confidence is the probability of the most probable class; accuracy is how often that class occurred.",
    (
        "The confidence ECE looks at the most probable class only; the classwise ECE is the mean over classes of the "
        "binary ECE of each, MCE is the largest gap of a bin. Expected is the mean under calibration: labels drawn "
        "anew from the predictions. The intervals allow for the upward bias of binned errors and may end below the "
        "estimate."
    ),
    "MMCE compares confidence and accuracy with a kernel of bandwidth 0.2 instead of bins.",
    (
        "p (Holm) allows for the number of tests in its table, and for that of classes in theirs. The tests do not ask "
        "the same question: calibration_tests says what each can see."
    ),
)


def multiclass_report(sample: MulticlassSample, options: Options) -> CalibrationReport:
    """Compute the report on predictions for several classes."""
    values: dict[str, Any] = {
        "y": sample.y, "p": sample.p, "freq_weights": sample.weights, "classes": range(len(sample.classes))
    }  # fmt: skip
    errors, tests = _errors(values, options)
    classwise = tests["classwise"]
    indexes = _indexes(sample, options)
    table = reliability_table(**values, **options.binned, type="confidence", alpha=options.alpha)
    classes = _classes(sample, classwise)
    shown = (*_battery(sample, values, options), *tests.values())
    generator = np.random.default_rng(options.seed)
    top = top_label(sample.y, sample.p)
    headings = [
        error_title(title, row[0], (row[1], row[2]), row[4], options.alpha)
        for title, row in zip(("ECE", "Classwise ECE"), errors.to_numpy(dtype=float)[:2], strict=True)
    ]
    look = options.look
    return CalibrationReport(
        title=options.title,
        data=_description(sample, table, options),
        indexes=indexes,
        sections=_SECTIONS,
        errors=errors,
        tests=shown,
        bins=table,
        findings=multiclass_findings(
            MulticlassFacts(indexes=indexes, errors=errors, classes=classes, alpha=options.alpha)
        ),
        notes=(*_NOTES, *remarks(sample.notes, shown)),
        panel=binary_panel(
            top.hit.astype(float), top.confidence, sample.weights, look, generator, headings[0], upper=1.0
        ),
        alpha=options.alpha,
        classes=classes,
        class_panels=class_panels(sample, look, generator, headings[1]),
    )


def _description(sample: MulticlassSample, table: pd.DataFrame, options: Options) -> tuple[tuple[str, str], ...]:
    """Describe the data in names and texts."""
    counts = sample.class_counts
    names = [str(name) for name in sample.classes]
    entries = [
        ("Outcome", options.outcome),
        ("Predictions", options.predictions),
        ("Observations", format_count(sample.nobs)),
        ("Classes", f"{len(names)}"),
        ("Class of each column", shorten(", ".join(names), _LONGEST_LIST, placeholder=" …")),
        ("Rows of a class", f"{format_count(counts.min())} to {format_count(counts.max())}"),
        ("Smallest probability", short(float(sample.p.min()))),
        ("Bins", bins_text(len(table), options)),
        ("Intervals", f"{100 * (1 - options.alpha):g}%"),
    ]
    if sample.weights is not None:
        entries.insert(3, ("Rows", f"{np.count_nonzero(sample.weights)}, weighted"))
    return tuple(entries)


def _indexes(sample: MulticlassSample, options: Options) -> pd.DataFrame:
    """Collect scores with their standard errors and limits."""
    top = top_label(sample.y, sample.p)
    hit = top.hit.astype(float)
    w = sample.weights
    rows = {
        "Accuracy": options.mean_row(hit, w, (0.0, 1.0)),
        "Mean confidence": options.mean_row(top.confidence, w, (0.0, 1.0)),
        "Confidence - accuracy": options.mean_row(top.confidence - hit, w, (-1.0, 1.0)),
        "Brier": options.mean_row(brier_rows(sample), w, (0.0, 2.0)),
        "Log loss": options.mean_row(log_rows(sample, LOG_EPS), w, (0.0, np.inf)),
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=["estimate", "se", "ci_low", "ci_high"])


def _errors(values: dict[str, Any], options: Options) -> tuple[pd.DataFrame, dict[str, PseudoLabelTest]]:
    """Collect calibration errors with what can be said of their sureness, and the two main tests."""
    plain = evaluate(**values, **options.binned)["value"]
    frame = pd.DataFrame(np.nan, index=list(_ERRORS), columns=list(ERROR_COLUMNS))
    frame["estimate"] = [plain[name] for name in _ERRORS.values()]
    tests = {}
    for name, reading in (("Confidence ECE", "confidence"), ("Classwise ECE", "classwise")):
        settings = {**values, **options.binned, **options.drawn, "type": reading}
        frame.loc[name, ["ci_low", "ci_high"]] = bootstrap(ece, **settings).conf_int(options.alpha)
        found = pseudo_label_test(**settings, statistic="ece")
        tests[reading] = replace(found, name=f"Pseudo-label test, {name}")
        frame.loc[name, ["expected", "pvalue"]] = tests[reading].expected, tests[reading].pvalue
    kernel = pseudo_label_test(**values, **options.drawn, statistic="mmce")
    frame.loc["MMCE", ["expected", "pvalue"]] = kernel.expected, kernel.pvalue
    return frame, tests


def _classes(sample: MulticlassSample, test: PseudoLabelTest) -> pd.DataFrame:
    """Make a row for each class."""
    frame = pd.DataFrame(test.by_class).rename(columns={"statistic": "ece"})
    frame.index = pd.Index(sample.classes, name="class")
    return frame.assign(
        count=sample.class_counts,
        frequency=sample.class_counts / sample.nobs,
        mean_p=np.average(sample.p, axis=0, weights=sample.weights),
    )


def _battery(sample: MulticlassSample, values: dict[str, Any], options: Options) -> tuple[CalibrationTest, ...]:
    """Run the battery; only the tests that are quick where the others would take minutes."""
    if sample.nobs <= BATTERY_ROWS:
        battery = calibration_tests(**values, **options.drawn)
        # The tests of the ECE come on the bins of the report, with a row for each class.
        return tuple(test for test in battery if test.name != "Pseudo-label test")
    return (
        *(recalibration_test(**values, against=against, **options.drawn) for against in ("temperature", "vector")),
        hosmer_lemeshow(**values, **options.drawn),
    )


__all__ = ["multiclass_report"]
