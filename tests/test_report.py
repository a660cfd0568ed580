"""The report: its numbers are those of the functions it names, its forms hold them, its words say no more."""

from __future__ import annotations

import base64
import copy
import io
import pickle
import re
import struct
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from calstat._arrays.statistics import mean_limits
from calstat._report import CalibrationReport, binary, report
from calstat._report import html as pages
from calstat._report.latex import table_latex
from calstat._report.layout import Table
from calstat._results import latex_escape as escape
from calstat._results import make_summary
from calstat.datasets import load_heart_disease, load_vehicle
from calstat.diagnostics import (
    calibration_by,
    calibration_tests,
    hosmer_lemeshow,
    recalibration_test,
    spiegelhalter,
    val_prob,
)
from calstat.exceptions import DataWarning, InputError, LabelError, NotDefinedError
from calstat.metrics import (
    accuracy,
    brier_score,
    classwise_ece,
    confidence_ece,
    e50,
    e90,
    ece,
    emax,
    ici,
    log_loss,
    mce,
    reliability_table,
)

SNAPSHOT = Path(__file__).parent / "snapshots" / "report_heart_disease.txt"


@pytest.fixture(scope="module")
def heart():
    return load_heart_disease()


@pytest.fixture(scope="module")
def made(heart):
    return report(heart["disease"], heart["p_logistic"])


class TestNumbers:
    def test_indexes_are_those_of_val_prob(self, heart, made):
        expected = val_prob(heart["disease"], heart["p_logistic"])
        pd.testing.assert_frame_equal(made.indexes.loc[expected.index], expected)

    def test_scores(self, heart, made):
        y, p = heart["disease"], heart["p_logistic"]
        estimates = made.indexes["estimate"]
        assert estimates["Log loss"] == pytest.approx(log_loss(y, p), rel=1e-12)
        assert estimates["Brier"] == pytest.approx(brier_score(y, p), rel=1e-12)
        assert estimates["MCB"] - estimates["DSC"] + estimates["UNC"] == pytest.approx(brier_score(y, p), rel=1e-10)
        loss = -np.log(np.where(y == 1, p, 1 - p))
        assert made.indexes.loc["Log loss", "se"] == pytest.approx(loss.std(ddof=1) / np.sqrt(297), rel=5e-3)

    def test_errors_are_those_of_the_metrics(self, heart, made):
        y, p = heart["disease"], heart["p_logistic"]
        for name, metric in {"ECE": ece, "MCE": mce, "ICI": ici, "E50": e50, "E90": e90, "Emax": emax}.items():
            assert made.errors.loc[name, "estimate"] == pytest.approx(metric(y, p), rel=1e-12), name
        row = made.errors.loc["ECE"]
        assert row["ci_low"] <= row["estimate"] <= row["ci_high"]
        assert 0 < row["expected"] < 0.1
        assert 0 < row["pvalue"] < 1

    def test_tests(self, heart, made):
        y, p = heart["disease"], heart["p_logistic"]
        expected = list(calibration_tests(y, p, rng=0))[:-1]
        assert [test.name for test in made.tests] == [test.name for test in expected]
        np.testing.assert_allclose([t.pvalue for t in made.tests], [t.pvalue for t in expected], rtol=1e-12)
        frame = made.to_frame().query("section == 'test'")
        assert (frame["pvalue_holm"] >= frame["pvalue"]).all()

    def test_many_rows_get_the_quick_tests(self, monkeypatch, heart):
        monkeypatch.setattr(binary, "BATTERY_ROWS", 200)
        y, p = heart["disease"], heart["p_logistic"]
        made = report(y, p, n_resamples=19)
        expected = [
            *(recalibration_test(y, p, against=against) for against in ("in_the_large", "logistic", "beta")),
            spiegelhalter(y, p),
            hosmer_lemeshow(y, p, rng=0),
        ]
        assert [test.name for test in made.tests] == [test.name for test in expected]
        np.testing.assert_allclose([t.pvalue for t in made.tests], [t.pvalue for t in expected], rtol=1e-12)

    def test_bins(self, heart, made):
        expected = reliability_table(heart["disease"], heart["p_logistic"])
        pd.testing.assert_frame_equal(made.bins, expected)

    def test_binning_options_are_passed_on(self, heart):
        y, p = heart["disease"], heart["p_logistic"]
        made = report(y, p, bins=5, strategy="equal_freq", n_resamples=49)
        assert len(made.bins) == 5
        assert made.errors.loc["ECE", "estimate"] == pytest.approx(ece(y, p, bins=5, strategy="equal_freq"))
        assert ("Bins", "5, equal frequency") in made.data

    def test_alpha_widens_every_interval(self, heart):
        y, p = heart["disease"], heart["p_logistic"]
        wide, narrow = (report(y, p, alpha=alpha, n_resamples=49) for alpha in (0.01, 0.2))
        for table in ("indexes", "errors", "bins"):
            a, b = (
                (frame["ci_high"] - frame["ci_low"]).dropna()
                for frame in (getattr(wide, table), getattr(narrow, table))
            )
            assert (a > b).all(), table
        assert "99% interval" in str(wide)

    def test_equal_data_give_equal_reports(self, heart):
        first, second = (report(heart["disease"], heart["p_logistic"], n_resamples=19) for _ in range(2))
        assert str(first) == str(second)
        assert first.to_html() == second.to_html()

    def test_weights_are_repetitions(self, heart):
        y, p = heart["disease"].to_numpy(), heart["p_logistic"].to_numpy()
        w = np.arange(y.size) % 3
        weighted = report(y, p, freq_weights=w, n_resamples=99)
        repeated = report(np.repeat(y, w), np.repeat(p, w), n_resamples=99)
        pd.testing.assert_frame_equal(weighted.indexes, repeated.indexes, rtol=1e-6)
        pd.testing.assert_series_equal(weighted.errors["estimate"], repeated.errors["estimate"], rtol=1e-9)
        assert dict(weighted.data)["Rows"] == f"{np.count_nonzero(w)}, weighted"
        assert dict(weighted.data)["Observations"] == str(int(w.sum()))


class TestForms:
    def test_text_is_the_snapshot(self, made):
        assert str(made) + "\n" == SNAPSHOT.read_text(encoding="utf-8")

    def test_text_fits_a_terminal(self, made):
        assert max(len(line) for line in str(made).splitlines()) <= 100

    def test_frame_holds_every_number_once(self, made):
        frame = made.to_frame()
        assert list(frame.columns) == [
            "section", "name", "method", "estimate", "se", "ci_low", "ci_high", "expected", "df", "pvalue",
            "pvalue_holm",
        ]  # fmt: skip
        assert not frame.duplicated(["section", "name"]).any()
        assert frame["section"].value_counts().to_dict() == {
            "index": len(made.indexes), "error": len(made.errors), "test": len(made.tests)
        }  # fmt: skip
        row = frame.set_index("name").loc["Slope"]
        assert row["estimate"] == made.indexes.loc["Slope", "estimate"]

    def test_latex_has_every_table_and_no_bare_special_character(self, made):
        text = made.summary().as_latex()
        assert text.count(r"\begin{tabular}") == 6
        assert sorted(re.findall(r"\\begin{(\w+)}", text)) == sorted(re.findall(r"\\end{(\w+)}", text))
        assert r"95\% interval" in text
        assert r"p\_logistic" in text
        assert not re.search(r"(?<!\\)[%#$_]", text)
        for sentence in made.findings:
            assert escape(sentence) in text
        rows = re.search(r"Scores and discrimination.*?\\midrule\n(.*?)\\bottomrule", text, re.DOTALL)[1]
        assert all(line.count(" & ") == 3 for line in rows.strip().splitlines())

    def test_latex_escapes_what_the_user_wrote(self):
        assert escape(r"a_b & 50% {x}^2 \n #1 $5 ~ <|>") == (
            r"a\_b \& 50\% \{x\}\textasciicircum{}2 \textbackslash{}n \#1 \$5 \textasciitilde{} "
            r"\textless{}\textbar{}\textgreater{}"
        )

    def test_latex_of_other_summaries_escapes_the_notes(self):
        text = make_summary([], ["a 95% interval of x_1 & more"]).as_latex()
        assert r"a 95\% interval of x\_1 \& more" in text

    def test_copies_and_pickles(self, made):
        for twin in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            assert str(twin) == str(made)

    def test_is_immutable(self, made):
        with pytest.raises(AttributeError):
            made.title = "other"

    def test_plot_draws_the_diagram(self, made):
        figure, ax = plt.subplots()
        assert made.plot(ax) is figure
        np.testing.assert_array_equal(ax.collections[-1].get_offsets(), made.bins[["mean_p", "mean_y"]].dropna())
        assert f"ECE {made.errors.loc['ECE', 'estimate']:.3f}" in ax.get_title(loc="left")


class Reader(HTMLParser):
    """Collects what a page holds, and that its tags are closed in order."""

    VOID = frozenset({"meta", "img", "br", "link", "hr", "input"})

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.links, self.words = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in {"src", "href", "action"}]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


class TestPage:
    def test_is_one_file_that_needs_nothing_else(self, made, tmp_path):
        path = tmp_path / "report.html"
        page = made.to_html(path)
        assert path.read_text(encoding="utf-8") == page
        reader = read(page)
        assert [link.split(",")[0] for link in reader.links] == ["data:image/png;base64"]
        assert not {"script", "link", "iframe"} & set(reader.tags)
        assert "url(" not in page
        assert "@import" not in page
        png = base64.b64decode(reader.links[0].split(",")[1])
        width, height = struct.unpack(">II", png[16:24])
        assert width > 700
        assert height > 700

    def test_leaves_no_figure_open(self, made):
        made.to_html()
        assert plt.get_fignums() == []

    def test_says_everything(self, made):
        words = " ".join(" ".join(read(made.to_html()).words).split())
        for sentence in (*made.findings, *made.notes):
            assert " ".join(sentence.split()) in words
        for name in (*made.errors.index, "Slope", "Intercept (slope 1)", "C (ROC)"):
            assert name in words
        for test in made.tests:
            assert test.null in words

    def test_text_of_the_user_is_escaped(self):
        rng = np.random.default_rng(0)
        p = pd.Series(rng.random(60), name="<script>p</script>")
        y = pd.Series(np.where(rng.random(60) < p, "größe <b> & 🙂", "no"), name='"quoted"')
        page = report(y, p, event="größe <b> & 🙂", n_resamples=49, title="A < B").to_html()
        reader = read(page)
        assert {"script", "b"}.isdisjoint(reader.tags)
        words = "".join(reader.words)
        assert "größe <b> & 🙂" in words
        assert '"quoted"' in words
        assert "A < B" in words

    def test_colours_of_text_have_contrast(self):
        def luminance(colour):
            parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
            return np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [
                0.2126,
                0.7152,
                0.0722,
            ]

        colours = dict(re.findall(r"--(\w+): (#\w{6})", pages._STYLE))
        for ink in ("ink", "soft"):
            for paper in ("#ffffff", colours["tint"]):
                assert (luminance(paper) + 0.05) / (luminance(colours[ink]) + 0.05) > 7

    def test_remarks_stand_under_the_names(self):
        table = Table(title="t", headers=["n"], stubs=["a"], rows=[["1"]], remarks=["x < y"])
        page = pages.table_html(table)
        assert '<th scope="row">a<small>x &lt; y</small></th><td>1</td>' in page
        assert r"a \newline {\footnotesize x \textless{} y} & 1 \\" in table_latex(table)


class TestOddData:
    @pytest.mark.parametrize(
        ("y", "p", "options"),
        [
            (np.r_[np.zeros(20), 1.0], np.full(21, 0.1), {}),
            (np.r_[np.zeros(15), np.ones(15)], np.linspace(0.1, 0.9, 30), {}),
            ([0, 1, 0, 1] * 10, [0.0, 1.0, 0.5, 0.5] * 10, {}),
            ([0, 1], [0.2, 0.9], {}),
            (np.zeros(20), np.linspace(0.1, 0.9, 20), {"event": 1}),
            (np.ones(20), np.linspace(0.1, 0.9, 20), {"event": 1}),
        ],
        ids=["constant", "separated", "zeros and ones", "two rows", "no event", "events only"],
    )
    @pytest.mark.filterwarnings("ignore::calstat.exceptions.CalstatWarning")
    def test_every_form_is_made(self, y, p, options):
        made = report(y, p, n_resamples=19, **options)
        assert made.findings
        read(made.to_html())
        assert max(len(line) for line in str(made).splitlines()) <= 100
        assert "1e-1" not in " ".join(made.findings)

    def test_errors_name_the_argument(self, heart):
        y, p = heart["disease"], heart["p_logistic"]
        with pytest.raises(InputError, match="`alpha`"):
            report(y, p, alpha=2)
        with pytest.raises(InputError, match="`rng`"):
            report(y, p, rng=-1)
        with pytest.raises(LabelError):
            report(np.where(y == 1, "ill", "well"), p)
        with pytest.raises(InputError, match="whole numbers"):
            report(y, p, freq_weights=np.full(len(y), 0.5))


def test_report_is_a_calibration_report(made):
    assert isinstance(made, CalibrationReport)
    stream = io.StringIO()
    print(made, file=stream)
    assert stream.getvalue().startswith(" ")


@pytest.fixture(scope="module")
def vehicles():
    return load_vehicle()


@pytest.fixture(scope="module")
def several(vehicles):
    return report(vehicles["vehicle"], vehicles.filter(like="p_"), title="Vehicles")


class TestSeveralClasses:
    def test_numbers(self, vehicles, several):
        y, P = vehicles["vehicle"], vehicles.filter(like="p_")
        estimate = several.indexes["estimate"]
        assert estimate["Accuracy"] == pytest.approx(accuracy(y, P), rel=1e-12)
        assert estimate["Brier"] == pytest.approx(brier_score(y, P), rel=1e-12)
        assert estimate["Log loss"] == pytest.approx(log_loss(y, P), rel=1e-12)
        assert estimate["Mean confidence"] == pytest.approx(P.to_numpy().max(axis=1).mean(), rel=1e-12)
        hit = P.to_numpy().argmax(axis=1) == np.searchsorted(["bus", "opel", "saab", "van"], y)
        difference = P.to_numpy().max(axis=1) - hit
        row = several.indexes.loc["Confidence - accuracy"]
        assert row["estimate"] == pytest.approx(difference.mean(), rel=1e-10)
        assert row["se"] == pytest.approx(difference.std(ddof=1) / np.sqrt(y.size), rel=1e-3)
        assert several.errors.loc["Confidence ECE", "estimate"] == pytest.approx(confidence_ece(y, P), rel=1e-12)
        assert several.errors.loc["Classwise ECE", "estimate"] == pytest.approx(classwise_ece(y, P).mean(), rel=1e-12)

    def test_classes(self, vehicles, several):
        y, P = vehicles["vehicle"], vehicles.filter(like="p_")
        frame = several.classes
        assert list(frame.index) == ["bus", "opel", "saab", "van"]
        np.testing.assert_allclose(frame["ece"], classwise_ece(y, P), rtol=1e-12)
        np.testing.assert_array_equal(frame["count"], y.value_counts().sort_index())
        np.testing.assert_allclose(frame["mean_p"], P.mean(), rtol=1e-12)
        assert (frame["pvalue_holm"] >= frame["pvalue"]).all()

    def test_tests(self, vehicles, several):
        y, P = vehicles["vehicle"], vehicles.filter(like="p_")
        battery = calibration_tests(y, P, n_resamples=999, rng=0)
        assert [str(test) for test in several.tests[:5]] == [str(test) for test in battery.tests[:5]]
        assert [test.name for test in several.tests[5:]] == [
            "Pseudo-label test, Confidence ECE",
            "Pseudo-label test, Classwise ECE",
        ]

    def test_many_rows_leave_out_the_slow_tests(self, vehicles):
        y, P = vehicles["vehicle"], vehicles.filter(like="p_")
        made = report(y, P, freq_weights=np.full(y.size, 30), n_resamples=19)
        assert [test.name for test in made.tests] == [
            "Recalibration by TemperatureScaling",
            "Recalibration by VectorScaling",
            "Hosmer-Lemeshow",
            "Pseudo-label test, Confidence ECE",
            "Pseudo-label test, Classwise ECE",
        ]

    def test_text_is_the_snapshot(self, several):
        snapshot = SNAPSHOT.with_name("report_vehicle.txt")
        assert str(several) + "\n" == snapshot.read_text(encoding="utf-8")

    def test_forms(self, several):
        assert max(len(line) for line in str(several).splitlines()) <= 100
        reader = read(several.to_html())
        assert plt.get_fignums() == []
        assert len(reader.links) == 2
        words = " ".join(" ".join(reader.words).split())
        assert all(" ".join(sentence.split()) in words for sentence in several.findings)
        assert not several.to_frame().duplicated(["section", "name", "method"]).any()
        text = several.summary().as_latex()
        assert text.count(r"\begin{tabular}") == 6
        assert not re.search(r"(?<!\\)[%#$_]", text)
        assert str(pickle.loads(pickle.dumps(several))) == str(several)

    def test_pictures(self, several):
        assert several.plot().axes[0].get_ylabel() == "Accuracy"
        assert len(several.plot_classes().axes) == 4

    def test_a_binary_report_has_no_panels(self, made):
        with pytest.raises(NotDefinedError, match="plot"):
            made.plot_classes()

    def test_a_class_that_does_not_occur_and_long_names(self):
        rng = np.random.default_rng(1)
        P = rng.dirichlet(np.ones(35), 200)
        names = [f"a rather long name of class number {k}" for k in range(35)]
        y = np.array(names)[(P[:, :30].cumsum(axis=1) > 0.8 * rng.random((200, 1))).argmax(axis=1)]
        with pytest.warns(DataWarning):
            made = report(y, P, classes=names, n_resamples=19)
        assert max(len(line) for line in str(made).splitlines()) <= 120
        assert "the 30 of 35 with the largest ECE" in str(made)
        assert len(made.tests) == 7
        assert all(0 < test.pvalue <= 1 for test in made.tests)

    def test_weights_are_repetitions(self, vehicles):
        y, P = vehicles["vehicle"].to_numpy()[:120], vehicles.filter(like="p_").to_numpy()[:120]
        w = np.arange(120) % 3
        names = ["bus", "opel", "saab", "van"]
        weighted = report(y, P, classes=names, freq_weights=w, n_resamples=19)
        repeated = report(np.repeat(y, w), np.repeat(P, w, axis=0), classes=names, n_resamples=19)
        pd.testing.assert_frame_equal(weighted.indexes, repeated.indexes, rtol=1e-6)
        pd.testing.assert_series_equal(weighted.errors["estimate"], repeated.errors["estimate"], rtol=1e-9)
        assert dict(weighted.data)["Rows"] == "80, weighted"


@pytest.fixture(scope="module")
def both(heart):
    models = {"logistic": heart["p_logistic"]}
    return report(heart["disease"], heart["p_naive_bayes"], models=models, n_resamples=99)


class TestModels:
    def test_rows_are_the_models_with_the_report_s_own_first(self, both, heart):
        frame = both.models.frame
        assert list(frame.index) == ["p_naive_bayes", "logistic"]
        y = heart["disease"]
        for name, column in (("p_naive_bayes", "p_naive_bayes"), ("logistic", "p_logistic")):
            assert frame.loc[name, "log_loss"] == pytest.approx(log_loss(y, heart[column]), rel=1e-12)
            assert frame.loc[name, "ECE"] == pytest.approx(ece(y, heart[column]), rel=1e-12)
            assert frame.loc[name, "Slope"] == pytest.approx(val_prob(y, heart[column]).loc["Slope", "estimate"])

    def test_differences_are_paired(self, both, heart):
        y = heart["disease"].to_numpy()

        def loss(p):
            p = np.clip(p, 1e-15, 1 - 1e-15)
            return -np.log(np.where(y == 1, p, 1 - p))

        difference = loss(heart["p_logistic"].to_numpy()) - loss(heart["p_naive_bayes"].to_numpy())
        row = both.models.frame.loc["logistic"]
        assert row["difference"] == pytest.approx(difference.mean(), rel=1e-10)
        assert (row["ci_low"], row["ci_high"]) == pytest.approx(mean_limits(difference, 0.05), rel=1e-10)
        assert np.isnan(both.models.frame.loc["p_naive_bayes", "ci_low"])

    def test_forms_hold_the_models(self, both):
        assert "Models" in str(both)
        assert max(len(line) for line in str(both).splitlines()) <= 100
        assert len(read(both.to_html()).links) == 2
        assert both.summary().as_latex().count(r"\begin{tabular}") == 8
        ax = both.models.plot().axes[0]
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["p_naive_bayes", "logistic"]

    def test_names_must_differ_and_rows_must_match(self, heart):
        y, p = heart["disease"], heart["p_logistic"]
        with pytest.raises(InputError, match="other names"):
            report(y, p, models={"p_logistic": p})
        with pytest.raises(InputError, match="same length"):
            report(y.to_numpy(), p.to_numpy(), models={"short": p.to_numpy()[:-1]})

    def test_models_of_several_classes_are_refused(self, vehicles):
        P = vehicles.filter(like="p_")
        with pytest.raises(InputError, match="`models`"):
            report(vehicles["vehicle"], P, models={"again": P})
        with pytest.raises(InputError, match="`by`"):
            report(vehicles["vehicle"], P, by=np.arange(len(P)) % 2)


@pytest.fixture(scope="module")
def apart(heart):
    return report(heart["disease"], heart["p_logistic"], by=heart["sex"], n_resamples=49)


class TestGroups:
    def test_numbers_are_those_of_calibration_by(self, apart, heart):
        expected = calibration_by(heart["disease"], heart["p_logistic"], heart["sex"], rng=0)
        pd.testing.assert_frame_equal(apart.groups.table, expected.table)
        assert apart.groups.test.pvalue == expected.test.pvalue

    def test_forms(self, apart):
        text = str(apart)
        assert "Groups: on average" in text
        assert "female" in text
        assert max(len(line) for line in text.splitlines()) <= 100
        page = apart.to_html()
        read(page)
        assert "Groups: spread and error" in page
        assert apart.summary().as_latex().count(r"\begin{tabular}") == 8
        assert any("Between groups: no evidence that their calibration differs" in s for s in apart.findings)
