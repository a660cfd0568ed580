"""What a report says in words, and how its tables are laid out."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

from calstat._report.layout import bin_table, error_table, group_tables, index_table
from calstat._report.layout import test_table as table_of_tests
from calstat._report.words import Facts, MulticlassFacts, findings, multiclass_findings, short
from calstat._results import CalibrationTest
from calstat.metrics import reliability_table

CAUSAL = re.compile(r"\b(because|cause[sd]?|due to|effect|leads? to|proves?|confirms?|is calibrated)\b", re.IGNORECASE)


def facts(*, oe=(1.0, 0.9, 1.1), slope=(1.0, 0.8, 1.2), p=0.4, ece=(0.03, 0.025, 0.3), events=150.0, scaled=0.3):
    nan = np.nan
    indexes = pd.DataFrame(
        {"O/E": [oe[0], nan, *oe[1:]], "Slope": [slope[0], nan, *slope[1:]],
         "C (ROC)": [0.8, 0.02, 0.76, 0.84], "Brier scaled": [scaled, nan, nan, nan]},
        index=["estimate", "se", "ci_low", "ci_high"],
    ).T  # fmt: skip
    errors = pd.DataFrame({"estimate": ece[0], "expected": ece[1], "pvalue": ece[2]}, index=["ECE"])
    test = CalibrationTest(name="t", null="n", statistic=1.0, pvalue=p, distribution="chi2", method="lr", nobs=300.0)
    return Facts(indexes=indexes, errors=errors, logistic=test, events=events, nonevents=200.0, alpha=0.05)


class TestWords:
    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({}, "No evidence that the predictions are too high or too low"),
            ({"oe": (1.3, 1.1, 1.6)}, "more frequent than predicted"),
            ({"oe": (0.7, 0.5, 0.9)}, "less frequent than predicted"),
            ({"slope": (0.6, 0.4, 0.9)}, "too extreme, on the logit scale"),
            ({"slope": (1.6, 1.2, 1.9)}, "not extreme enough, on the logit scale"),
            ({"slope": (np.nan, np.nan, np.nan)}, "slope is not determined"),
            ({"p": 0.001}, "together: evidence against calibration (p = 0.001)"),
            ({"p": 1e-9}, "together: evidence against calibration (p < 0.001)"),
            ({"p": 0.4}, "together: no evidence against calibration (p = 0.400)"),
            ({"ece": (0.08, 0.02, 0.001)}, "more than chance would give"),
            ({"ece": (0.03, 0.02, 0.2)}, "no more than chance may give"),
            ({"events": 40.0}, "With 40 events only large miscalibration"),
            ({"events": 1.0}, "With 1 event only"),
            ({"events": 0.0}, "One of the two outcomes does not occur"),
            ({"scaled": -0.2}, "worse than that of one constant prediction"),
        ],
    )
    def test_sentences_follow_the_numbers(self, change, said):
        assert said in " ".join(findings(facts(**change)))

    def test_a_limit_at_the_calibrated_value_is_no_evidence(self):
        assert findings(facts(oe=(1.1, 1.0, 1.2)))[0].startswith("No evidence")

    @pytest.mark.parametrize("p", [1e-5, 0.3])
    @pytest.mark.parametrize("slope", [(0.5, 0.4, 0.6), (1.0, 0.9, 1.1)])
    def test_they_never_claim_causes_or_calibration(self, p, slope):
        for sentence in findings(facts(p=p, slope=slope)):
            assert not CAUSAL.search(sentence), sentence

    @pytest.mark.parametrize(
        ("value", "text"),
        [(0.5, "0.500"), (1.0, "1.00"), (12.34, "12.3"), (123.4, "123"), (12345.6, "12346"), (0.00123, "0.00123"),
         (2e-16, "0"), (np.nan, "not defined"), (-0.25, "-0.250")],
    )  # fmt: skip
    def test_numbers_in_sentences(self, value, text):
        assert short(value) == text

    def test_evidence_of_a_difference_is_said(self):
        test = CalibrationTest(
            name="t", null="n", statistic=20.0, pvalue=1e-4, distribution="chi2", method="lr", nobs=300.0
        )
        sentences = findings(dataclasses.replace(facts(), groups=test))
        assert "Between groups: evidence that their calibration differs (p < 0.001)." in sentences


class TestWordsOfSeveralClasses:
    @pytest.mark.parametrize(
        ("difference", "holm", "said"),
        [
            ((0.1, 0.05, 0.15), [0.001, 0.5], "over-confident on average"),
            ((-0.1, -0.15, -0.05), [0.001, 0.5], "under-confident on average"),
            ((0.01, -0.05, 0.05), [0.001, 0.5], "no evidence of over- or under-confidence"),
            ((0.01, -0.05, 0.05), [0.001, 0.5], "evidence against calibration for a."),
            ((0.01, -0.05, 0.05), [0.2, 0.5], "no class shows evidence"),
            ((0.01, -0.05, 0.05), [0.001] * 9, "and 3 more"),
        ],
    )
    def test_sentences(self, difference, holm, said):
        nan = np.nan
        indexes = pd.DataFrame(
            {"Accuracy": [0.8] + [nan] * 3, "Mean confidence": [0.9] + [nan] * 3,
             "Confidence - accuracy": [difference[0], nan, *difference[1:]]},
            index=["estimate", "se", "ci_low", "ci_high"],
        ).T  # fmt: skip
        errors = pd.DataFrame(
            {"estimate": [0.1, 0.2], "expected": [0.1, 0.1], "pvalue": [0.3, 0.01]},
            index=["Confidence ECE", "Classwise ECE"],
        )
        classes = pd.DataFrame({"ece": 0.1, "pvalue_holm": holm}, index=list("abcdefghi")[: len(holm)])
        sentences = multiclass_findings(MulticlassFacts(indexes=indexes, errors=errors, classes=classes, alpha=0.05))
        assert said in " ".join(sentences)
        assert not any(CAUSAL.search(sentence) for sentence in sentences)


class TestLayout:
    def test_index_table(self):
        frame = pd.DataFrame(
            {"estimate": [0.5, np.nan], "se": [0.1, np.nan], "ci_low": [0.3, np.nan], "ci_high": [0.7, np.nan]},
            index=["a", "b"],
        )
        table = index_table("t", frame, 0.1, {"a": "0", "b": "1"})
        assert table.headers == ["estimate", "se", "90% interval", "calibrated"]
        assert table.rows == [["0.500", "0.100", "0.300 to 0.700", "0"], ["nan", "", "", "1"]]

    def test_error_and_bin_tables_leave_blank_what_does_not_exist(self):
        errors = pd.DataFrame(
            {"estimate": [0.1], "ci_low": [np.nan], "ci_high": [np.nan], "expected": [np.nan], "pvalue": [np.nan]},
            index=["ICI"],
        )
        assert error_table(errors, 0.05).rows == [["0.100", "", "", ""]]
        bins = reliability_table([0, 1, 1], [0.1, 0.1, 0.9], bins=4)
        table = bin_table(bins, 0.05)
        assert table.stubs == ["0 to 0.25", "0.25 to 0.5", "0.5 to 0.75", "0.75 to 1"]
        assert table.rows[1] == ["0", "", "", "", ""]

    def test_tests(self):
        test = CalibrationTest(
            name="T", null="H", statistic=2.0, pvalue=1e-5, df=2, distribution="chi2", method="pseudo_label", nobs=9.0
        )
        table = table_of_tests([test])
        assert table.rows == [["2.000", "2", "<0.001", "<0.001", "pseudo-label"]]
        assert table.headers == ["statistic", "df", "p", "p (Holm)", "method"]
        assert table.remarks == ["H0: H"]

    def test_groups(self):
        frame = pd.DataFrame(
            {"nobs": [10.0], "events": [4.0], "O/E": [1.0], "O/E low": [0.5], "O/E high": [2.0], "Slope": [np.nan],
             "Slope low": [np.nan], "Slope high": [np.nan], "ece": [0.1]},
            index=["a"],
        )  # fmt: skip
        average, spread = group_tables(frame, 0.05)
        assert average.rows == [["10", "4", "1.000", "0.500 to 2.000"]]
        assert spread.rows == [["nan", "", "0.100"]]
