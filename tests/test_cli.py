"""The command line: what each command prints and writes, and what it refuses in one line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import calstat as cs
from calstat._cli import main
from calstat.datasets import load_heart_disease, load_vehicle

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def heart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """The shipped data as ``scores.csv`` in an empty working folder."""
    monkeypatch.chdir(tmp_path)
    table = load_heart_disease()
    table.to_csv("scores.csv", index=False)
    return table


def _fails(capsys: Capture, *argv: str) -> str:
    """Run a command that must be refused; return its one line."""
    before = sorted(os.listdir())
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("calstat: ")
    assert err.count("\n") == 1
    assert sorted(os.listdir()) == before
    return err


REPORT = ("report", "scores.csv", "--outcome", "disease", "--probs", "p_naive_bayes")
FIT = ("fit", "scores.csv", "--outcome", "disease", "--probs", "p_naive_bayes", "--out", "map.json")


def test_demo_writes_what_it_says(heart: pd.DataFrame, capsys: Capture) -> None:
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    folder = Path("calstat-demo")
    assert sorted(os.listdir(folder)) == ["heart_disease.csv", "reliability.png", "report.html"]
    assert all(str(folder / name) in out for name in os.listdir(folder))
    assert (folder / "reliability.png").read_bytes().startswith(b"\x89PNG")
    assert "</html>" in (folder / "report.html").read_text(encoding="utf-8")
    pd.testing.assert_frame_equal(pd.read_csv(folder / "heart_disease.csv"), heart)
    commands = [line.split()[1:] for line in out.splitlines() if line.startswith("  calstat ")]
    assert len(commands) == 2
    assert all(main(command) == 0 for command in commands)


def test_report_prints_the_report_of_the_library(heart: pd.DataFrame, capsys: Capture) -> None:
    assert main([*REPORT, "--html", "r.html", "--png", "d.png"]) == 0
    expected = cs.report(heart["disease"], heart["p_naive_bayes"], title="Calibration of p_naive_bayes")
    out = capsys.readouterr().out
    assert str(expected.summary()) in out
    assert out.endswith("Written: r.html\nWritten: d.png\n")
    assert Path("d.png").read_bytes().startswith(b"\x89PNG")
    assert Path("r.html").read_text(encoding="utf-8") == expected.to_html()


def test_report_as_json_holds_the_numbers(heart: pd.DataFrame, capsys: Capture) -> None:
    assert main([*REPORT, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    frame = cs.report(heart["disease"], heart["p_naive_bayes"]).to_frame()
    read = pd.DataFrame(content["results"]).astype(frame.dtypes)
    pd.testing.assert_frame_equal(read, frame, check_exact=True)
    assert 0 < read["pvalue"].min() < 1e-30  # small p-values keep their digits
    assert len(content["bins"]) == 10
    assert content["findings"]
    assert content["classes"] is None


def test_report_reads_a_column_per_class(heart: pd.DataFrame, capsys: Capture) -> None:
    table = load_vehicle()
    table.to_csv("vehicle.csv", index=False)
    columns = [*table.columns[1:]]
    assert main(["report", "vehicle.csv", "--outcome", "vehicle", "--probs", *columns, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["n"] if "n" in row else row["count"] for row in content["classes"]] == [218, 212, 217, 199]
    assert set(content["classes"][0].values()) & {"bus"}


def test_report_sets_models_side_by_side(heart: pd.DataFrame, capsys: Capture) -> None:
    assert main([*REPORT, "--also", "p_logistic"]) == 0
    expected = cs.report(
        heart["disease"],
        heart["p_naive_bayes"],
        models={"p_logistic": heart["p_logistic"]},
        title="Calibration of p_naive_bayes",
    )
    assert capsys.readouterr().out == f"{expected.summary()}\n"


def test_report_assesses_subgroups(heart: pd.DataFrame, capsys: Capture) -> None:
    assert main([*REPORT, "--by", "sex"]) == 0
    expected = cs.report(
        heart["disease"], heart["p_naive_bayes"], by=heart["sex"], title="Calibration of p_naive_bayes"
    )
    assert capsys.readouterr().out == f"{expected.summary()}\n"
    assert main([*REPORT, "--by", "sex", "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert [(row["group"], row["nobs"]) for row in groups] == [("female", 96), ("male", 201)]
    heart.assign(ward="A").to_csv("scores.csv", index=False)
    assert "`groups` (column 'ward') must name at least two groups" in _fails(capsys, *REPORT, "--by", "ward")
    assert "has no column 'wards'. Did you mean 'ward'?" in _fails(capsys, *REPORT, "--by", "wards")


def test_report_counts_weights_as_copies(heart: pd.DataFrame, capsys: Capture) -> None:
    heart["n"] = np.arange(len(heart)) % 3
    heart.to_csv("weighted.csv", index=False)
    heart.loc[heart.index.repeat(heart["n"])].to_csv("repeated.csv", index=False)
    columns = ["--outcome", "disease", "--probs", "p_logistic", "--json"]
    assert main(["report", "weighted.csv", *columns, "--weights", "n"]) == 0
    weighted = json.loads(capsys.readouterr().out)
    assert main(["report", "repeated.csv", *columns]) == 0
    repeated = json.loads(capsys.readouterr().out)
    for one, other in zip(weighted["results"], repeated["results"], strict=True):
        # Simulated p-values and limits draw in another order; the estimates do not depend on it.
        assert one["name"] == other["name"]
        assert one["estimate"] == pytest.approx(other["estimate"], rel=1e-9)


@pytest.mark.parametrize("event", ["kränk 😷", "gesund"])
def test_report_takes_the_event_in_any_script(heart: pd.DataFrame, capsys: Capture, event: str) -> None:
    heart["état 'final'"] = np.where(heart["disease"] == 1, "kränk 😷", "gesund")
    heart.to_csv("scores.csv", index=False)
    columns = ["--outcome", "état 'final'", "--probs", "p_logistic"]
    assert main(["report", "scores.csv", *columns, "--event", event]) == 0
    assert event in capsys.readouterr().out


def test_test_prints_the_battery(heart: pd.DataFrame, capsys: Capture) -> None:
    expected = cs.calibration_tests(heart["disease"], heart["p_naive_bayes"], rng=5)
    assert main(["test", *REPORT[1:], "--seed", "5"]) == 0
    assert capsys.readouterr().out == f"{expected}\n"
    assert main(["test", *REPORT[1:], "--seed", "5", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["pvalue"] for row in content] == expected.to_frame()["pvalue"].to_list()
    assert all(row["null"] for row in content)


def test_test_stops_its_draws(heart: pd.DataFrame, capsys: Capture) -> None:
    argv = ["test", "scores.csv", "--outcome", "disease", "--probs", "p_logistic", "--draws", "3000"]
    assert main([*argv, "--stop-after", "10"]) == 0
    expected = cs.calibration_tests(heart["disease"], heart["p_logistic"], n_resamples=3000, stop_after=10, rng=0)
    assert capsys.readouterr().out == f"{expected}\n"
    assert min(t.details.get("n_resamples", 3000) for t in expected) < 3000
    assert "`stop_after` (--stop-after) must be" in _fails(capsys, *argv, "--stop-after", "0")
    assert "`n_resamples` (--draws) must be" in _fails(capsys, *argv[:-1], "0")


@pytest.mark.parametrize("score", ["brier", "log", "squared_ece"])
def test_compare_tests_differences_from_what_is_given(heart: pd.DataFrame, capsys: Capture, score: str) -> None:
    argv = ["compare", *REPORT[1:], "--methods", "beta", "--folds", "3", "--score", score]
    assert main([*argv, "--json"]) == 0
    given, beta = json.loads(capsys.readouterr().out)
    y, p = heart["disease"], heart["p_naive_bayes"]
    fitted = cs.CrossValidatedCalibration(y, p, cs.BetaCalibration, folds=3, shuffle=True, rng=0).fit()
    test = cs.compare_forecasts(y, fitted.oof_predictions, p, score=score)
    assert given["difference"] is None
    assert beta["difference"] == test.details["difference"] < 0
    assert (beta["ci_low"], beta["ci_high"]) == (test.details["ci_low"], test.details["ci_high"])
    assert beta["pvalue"] == test.pvalue
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "of the predictions as given" in out
    assert f"{beta['difference']:.4f}" in out


def test_compare_tests_differences_of_several_classes(heart: pd.DataFrame, capsys: Capture) -> None:
    table = load_vehicle()
    table.to_csv("vehicle.csv", index=False)
    columns = ["--outcome", "vehicle", "--probs", *table.columns[1:], "--folds", "3", "--json", "--score", "log"]
    assert main(["compare", "vehicle.csv", *columns, "--methods", "temperature"]) == 0
    given, temperature = json.loads(capsys.readouterr().out)
    # the mean of differences and the difference of means
    assert temperature["difference"] == pytest.approx(temperature["log_loss"] - given["log_loss"], rel=1e-10)


def test_compare_holds_out_every_row(heart: pd.DataFrame, capsys: Capture) -> None:
    argv = ["compare", *REPORT[1:], "--methods", "logistic", "--folds", "4", "--seed", "3"]
    assert main([*argv, "--json"]) == 0
    given, logistic = json.loads(capsys.readouterr().out)
    y, p = heart["disease"], heart["p_naive_bayes"]
    assert given == {
        "map": "as given",
        "log_loss": cs.log_loss(y, p),
        "brier_score": cs.brier_score(y, p),
        "ece": cs.ece(y, p),
    }
    fitted = cs.CrossValidatedCalibration(y, p, cs.LogisticCalibration, folds=4, shuffle=True, rng=3).fit()
    assert logistic["log_loss"] == cs.log_loss(y, fitted.oof_predictions)
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "as given" in out
    assert f"{logistic['log_loss']:.4f}" in out
    assert "(4 folds)" in " ".join(out.split())


def test_compare_tries_maps_that_suit_the_columns(heart: pd.DataFrame, capsys: Capture) -> None:
    table = load_vehicle()
    table.to_csv("vehicle.csv", index=False)
    columns = ["--outcome", "vehicle", "--probs", *table.columns[1:], "--folds", "3", "--json"]
    assert main(["compare", "vehicle.csv", *columns]) == 0
    assert [row["map"] for row in json.loads(capsys.readouterr().out)] == [
        "as given",
        "temperature",
        "vector",
        "dirichlet",
    ]
    assert "--event" in _fails(capsys, "compare", *REPORT[1:], "--event", "1", "--methods", "vector")


def test_rows_with_a_missing_value_are_left_out_and_counted(heart: pd.DataFrame, capsys: Capture) -> None:
    holes = heart.astype({"disease": float}).copy()
    holes.loc[3, "disease"] = np.nan
    holes.loc[[5, 8], "p_naive_bayes"] = np.nan
    holes.to_csv("scores.csv", index=False)
    assert main([*REPORT, "--json", "--event", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == "calstat: note: 3 of 297 rows have a missing value and were left out.\n"
    kept = heart.drop([3, 5, 8])
    expected = cs.report(kept["disease"], kept["p_naive_bayes"]).to_frame()
    np.testing.assert_allclose([r["estimate"] for r in json.loads(out)["results"]], expected["estimate"], rtol=1e-12)


def test_reads_standard_input(heart: pd.DataFrame, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(Path("scores.csv").read_bytes())))
    assert main(["report", "-", *REPORT[2:]]) == 0
    piped = capsys.readouterr().out
    assert main(REPORT) == 0
    assert capsys.readouterr().out == piped


@pytest.mark.parametrize(
    ("method", "make"),
    [
        ("beta", cs.BetaCalibration),
        ("logistic", cs.LogisticCalibration),
        ("platt", cs.PlattScaling),
        ("isotonic", cs.IsotonicCalibration),
        ("histogram", cs.HistogramBinning),
    ],
)
def test_fit_and_apply_equal_the_library(heart: pd.DataFrame, capsys: Capture, method: str, make: object) -> None:
    assert main([*FIT, "--method", method]) == 0
    result = make(heart["disease"], heart["p_naive_bayes"]).fit()
    assert "apply map.json" in capsys.readouterr().out
    assert main(["apply", "map.json", "scores.csv", "--out", "new.csv"]) == 0
    table = pd.read_csv("new.csv")
    assert list(table.columns) == [*heart.columns, "calibrated"]
    # CSV holds the shortest text that reads back as the same double.
    np.testing.assert_array_equal(table["calibrated"], result.predict(heart["p_naive_bayes"]))


@pytest.mark.parametrize(
    ("method", "make", "options"),
    [
        ("temperature", cs.TemperatureScaling, {"scores": "probability"}),
        ("vector", cs.VectorScaling, {"scores": "probability", "slopes": "common"}),
        ("dirichlet", cs.DirichletCalibration, {"penalty": cs.ODIR(0.01)}),
    ],
)
def test_fit_and_apply_several_classes(
    heart: pd.DataFrame, capsys: Capture, method: str, make: object, options: dict[str, object]
) -> None:
    table = load_vehicle()
    table.to_csv("vehicle.csv", index=False)
    columns = [*table.columns[1:]]
    texts = {"scores": "scores=probability", "slopes": "slopes=common", "penalty": "penalty=odir:0.01"}
    given = [part for name in options for part in ("--option", texts[name])]
    argv = ["--outcome", "vehicle", "--probs", *columns, "--method", method, *given, "--out", "map.json"]
    assert main(["fit", "vehicle.csv", *argv]) == 0
    assert main(["apply", "map.json", "vehicle.csv", "--out", "new.csv"]) == 0
    result = make(table["vehicle"], table[columns], **options).fit()
    calibrated = pd.read_csv("new.csv").iloc[:, -4:]
    assert list(calibrated.columns) == [f"calibrated_{name}" for name in ("bus", "opel", "saab", "van")]
    np.testing.assert_array_equal(calibrated, result.predict(table))

    assert main(["apply", "map.json", "vehicle.csv", "--out", "wide.csv", "--intervals"]) == 0
    wide = pd.read_csv("wide.csv").set_index(pd.RangeIndex(846))
    # Two ways to the same probability differ by rounding.
    np.testing.assert_allclose(wide[calibrated.columns], calibrated, rtol=1e-12)
    long = result.get_prediction(table).summary_frame()
    np.testing.assert_array_equal(wide["calibrated_saab_low"], long["mean_ci_lower"].xs("saab", level=1))


def test_fit_takes_a_formula_options_and_clusters(heart: pd.DataFrame, capsys: Capture) -> None:
    formula = ["--formula", "disease ~ p_naive_bayes", "--option", "parameters=ab", "--option", "penalty=firth"]
    assert main(["fit", "scores.csv", *formula, "--method", "beta", "--out", "map.json", "--event", "0"]) == 0
    expected = cs.BetaCalibration(
        heart["disease"], heart["p_naive_bayes"], parameters="ab", penalty="firth", event=0
    ).fit()
    pd.testing.assert_series_equal(cs.load("map.json").params, expected.params)
    capsys.readouterr()

    heart.rename(columns={"disease": "the 'disease'"}).to_csv("odd.csv", index=False)
    odd = ["--formula", """Q("the 'disease'") ~ p_naive_bayes""", "--event", "0", "--out", "odd.json"]
    assert main(["fit", "odd.csv", *odd]) == 0
    logistic = cs.LogisticCalibration(heart["disease"], heart["p_naive_bayes"], event=0).fit()
    pd.testing.assert_series_equal(cs.load("odd.json").params, logistic.params)
    capsys.readouterr()

    clustered = ["fit", "scores.csv", *FIT[2:], "--cluster", "age"]
    assert main(clustered) == 0
    result = cs.LogisticCalibration(heart["disease"], heart["p_naive_bayes"], groups=heart["age"])
    pd.testing.assert_series_equal(cs.load("map.json").bse, result.fit(cov_type="cluster").bse)


def test_apply_writes_intervals_parquet_and_standard_output(heart: pd.DataFrame, capsys: Capture) -> None:
    assert main(FIT) == 0
    capsys.readouterr()
    assert main(["apply", "map.json", "scores.csv", "--out", "new.parquet", "--intervals", "--alpha", "0.1"]) == 0
    assert capsys.readouterr().out == "Written: new.parquet (297 rows)\n"
    table = pd.read_parquet("new.parquet")
    assert list(table.columns[-4:]) == ["calibrated", "calibrated_se", "calibrated_low", "calibrated_high"]
    expected = cs.load("map.json").get_prediction(heart).summary_frame(alpha=0.1)
    np.testing.assert_array_equal(table.iloc[:, -4:], expected)

    assert main(["apply", "map.json", "new.parquet", "--out", "-"]) == 2  # it holds the column already
    capsys.readouterr()
    heart.drop(columns="disease").assign(p_naive_bayes=[np.nan, *heart["p_naive_bayes"][1:]]).to_csv("new.csv")
    assert main(["apply", "map.json", "new.csv", "--out", "-"]) == 0
    printed = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert printed["calibrated"].isna().to_list() == [True] + [False] * 296


REFUSED = {
    "missing file": (("report", "nowhere.csv", *REPORT[2:]), "nowhere.csv does not exist."),
    "wrong column": (
        (*REPORT[:4], "--probs", "p_naive_baye"),
        "no column 'p_naive_baye'. Did you mean 'p_naive_bayes'? Columns: disease, age,",
    ),
    "text for numbers": (
        (*REPORT[:4], "--probs", "sex"),
        "Column 'sex' must hold numbers; 297 of 297 values do not, the first is 'male' in row 1.",
    ),
    "no probabilities": ((*REPORT[:4], "--probs", "age"), "`p` (column 'age') must lie in [0, 1];"),
    "text outcome": (
        ("report", "scores.csv", "--outcome", "sex", "--probs", "p_logistic"),
        "`y` (column 'sex') holds the labels 'female', 'male'",
    ),
    "wrong event": (
        (*REPORT, "--event", "2"),
        "'2' (--event) is not a label of column 'disease', whose labels are 0, 1.",
    ),
    "wrong level": ((*REPORT, "--alpha", "5"), "alpha"),
    "no folder": ((*REPORT, "--html", "no/r.html"), "no/r.html cannot be written: No such file or directory."),
    "no folder for the picture": ((*REPORT, "--html", "r.html", "--png", "no/d.png"), "no/d.png cannot be written"),
    "no columns": (("fit", "scores.csv", "--out", "map.json"), "give --outcome and --probs, or --formula"),
    "wrong formula": (("fit", "scores.csv", "--formula", "disease", "--out", "m.json"), "`formula` must be a string"),
    "wrong name in a formula": (
        ("fit", "scores.csv", "--formula", "diseas ~ p_logistic", "--event", "1", "--out", "m.json"),
        "no column 'diseas'. Did you mean 'disease'?",
    ),
    "wrong option": (
        (*FIT, "--method", "beta", "--option", "slope=1"),
        "'slope=1' (--option) is not NAME=VALUE with a NAME out of parameters, monotone, eps, penalty.",
    ),
    "wrong penalty": (
        (*FIT, "--option", "penalty=odir:strong"),
        "'odir:strong' (--option) is not a penalty with its strength, such as odir:0.01.",
    ),
    "wrong option value": ((*FIT, "--method", "beta", "--option", "parameters=abc"), "`parameters` must be"),
    "no map": (
        ("apply", "map.json", "scores.csv", "--out", "-"),
        "map.json cannot be read: No such file or directory.",
    ),
    "a table for a map": (("apply", "scores.csv", "scores.csv", "--out", "-"), "scores.csv is no calibration map: "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_in_one_line(heart: pd.DataFrame, capsys: Capture, case: str) -> None:
    argv, message = REFUSED[case]
    assert message in _fails(capsys, *argv)


def test_text_outcome_is_told_of_the_event_argument(heart: pd.DataFrame, capsys: Capture) -> None:
    line = _fails(capsys, "report", "scores.csv", "--outcome", "sex", "--probs", "p_logistic")
    assert line.endswith("On the command line that is --event LABEL.\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("P_naive_bayes\n0.5\n", "new.csv has no column 'p_naive_bayes'. Did you mean 'P_naive_bayes'?"),
        ("p_naive_bayes\n0.5\n50%\n", "1 of 2 values do not, the first is '50%' in row 2. Divide percentages by 100."),
        ("p_naive_bayes\n0.5\n50\n", "must lie in [0, 1]; 1 of 2 values do not"),
    ],
)
def test_apply_tells_what_is_wrong_with_a_table(
    heart: pd.DataFrame, capsys: Capture, content: str, message: str
) -> None:
    assert main(FIT) == 0
    capsys.readouterr()
    Path("new.csv").write_text(content, encoding="utf-8")
    assert message in _fails(capsys, "apply", "map.json", "new.csv", "--out", "out.csv")


def test_two_models_for_two_classes_are_told_of_the_other_argument(heart: pd.DataFrame, capsys: Capture) -> None:
    line = _fails(capsys, *REPORT, "p_logistic")
    assert line.endswith("give one to --probs and the others to --also.\n")


def test_apply_says_when_a_stored_map_has_no_intervals(heart: pd.DataFrame, capsys: Capture) -> None:
    assert main([*FIT, "--method", "isotonic"]) == 0
    capsys.readouterr()
    assert "interval" in _fails(capsys, "apply", "map.json", "scores.csv", "--out", "-", "--intervals")


def test_an_event_for_several_classes_is_refused(heart: pd.DataFrame, capsys: Capture) -> None:
    argv = [*FIT, "--method", "dirichlet", "--event", "1"]
    assert "the method dirichlet takes a column for each class." in _fails(capsys, *argv)


def test_all_rows_missing_is_refused(heart: pd.DataFrame, capsys: Capture) -> None:
    heart.assign(p_naive_bayes=np.nan).to_csv("scores.csv", index=False)
    assert "no row without a missing value in disease, p_naive_bayes." in _fails(capsys, *REPORT)


def test_a_warning_is_one_line_and_no_failure(heart: pd.DataFrame, capsys: Capture) -> None:
    pd.DataFrame({"y": [0, 0, 0, 1, 1, 1], "p": [0.1, 0.2, 0.3, 0.7, 0.8, 0.9]}).to_csv("apart.csv", index=False)
    assert main(["fit", "apart.csv", "--outcome", "y", "--probs", "p", "--out", "map.json"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("calstat: warning: ")
    assert "firth" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("argv", [[], ["report"], ["report", "scores.csv", "--outcome", "y"], ["guess", "scores.csv"]])
def test_wrong_usage_exits_2_and_shows_it(capsys: Capture, argv: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert "usage: calstat" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv", [["--help"], *([name, "--help"] for name in ("demo", "report", "test", "compare", "fit", "apply"))]
)
def test_help_shows_an_example(capsys: Capture, argv: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert "\n  calstat " in out or argv[0] == "demo"
    assert max(map(len, out.splitlines())) <= 120


def test_runs_as_a_module_and_survives_a_reader_that_leaves(heart: pd.DataFrame) -> None:
    command = [sys.executable, "-m", "calstat", *REPORT]
    environment = {**os.environ, "PYTHONPATH": str(Path(cs.__file__).parents[1])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_two_columns_of_one_name_are_refused(heart: pd.DataFrame, capsys: Capture) -> None:
    text = heart[["disease", "p_naive_bayes", "p_logistic"]].to_csv(index=False)
    Path("double.csv").write_text(text.replace("p_logistic", "p_naive_bayes", 1), encoding="utf-8")
    message = _fails(capsys, "report", "double.csv", "--outcome", "disease", "--probs", "p_naive_bayes")
    assert "two columns named 'p_naive_bayes'" in message


@pytest.mark.parametrize("written", ["\\t", "tab", "\t"])
def test_a_tab_can_be_written_as_a_word(heart: pd.DataFrame, capsys: Capture, written: str) -> None:
    heart.to_csv("scores.tsv", sep="\t", index=False)
    command = ["test", "scores.tsv", "--outcome", "disease", "--probs", "p_naive_bayes", "--draws", "19"]
    assert main([*command, "--sep", written]) == 0
    assert "Spiegelhalter" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([*command, "--sep", "::"])


def test_rows_of_parquet_are_told_apart_by_their_place(heart: pd.DataFrame, capsys: Capture) -> None:
    assert main(FIT) == 0
    heart.set_index(pd.Index(np.arange(len(heart)) // 2, name="patient")).to_parquet("twice.parquet")
    assert main(["apply", "map.json", "twice.parquet", "--out", "out.csv"]) == 0
    assert main(["apply", "map.json", "scores.csv", "--out", "plain.csv"]) == 0
    capsys.readouterr()
    out, plain = pd.read_csv("out.csv"), pd.read_csv("plain.csv")
    pd.testing.assert_series_equal(out["calibrated"], plain["calibrated"])
    assert out["patient"].tolist() == (np.arange(len(heart)) // 2).tolist()


def test_a_map_of_two_columns_is_applied_to_the_event(heart: pd.DataFrame, capsys: Capture) -> None:
    heart.assign(p_0=1 - heart["p_naive_bayes"], p_1=heart["p_naive_bayes"]).to_csv("two.csv", index=False)
    command = ["fit", "two.csv", "--outcome", "disease", "--probs"]
    assert main(FIT) == 0
    assert main(["apply", "map.json", "scores.csv", "--out", "one.csv"]) == 0
    for order in (["p_0", "p_1"], ["p_1", "p_0"]):
        assert main([*command, *order, "--out", "two.json"]) == 0
        assert main(["apply", "two.json", "two.csv", "--out", "out.csv"]) == 0
        np.testing.assert_allclose(
            pd.read_csv("out.csv")["calibrated"], pd.read_csv("one.csv")["calibrated"], rtol=1e-6
        )
    capsys.readouterr()


def test_a_formula_and_named_columns_contradict_each_other(heart: pd.DataFrame, capsys: Capture) -> None:
    assert "leave out --outcome and --probs" in _fails(capsys, *FIT, "--formula", "disease ~ p_logistic")


def test_apply_leaves_other_columns_as_they_are_written(heart: pd.DataFrame, capsys: Capture) -> None:
    assert main(FIT) == 0
    text = "id,p_naive_bayes,arm,n\n00001,0.50,None,1\n00002,,NA,\n00003,NA,x,3\n"
    Path("new.csv").write_text(text, encoding="utf-8")
    assert main(["apply", "map.json", "new.csv", "--out", "out.csv"]) == 0
    capsys.readouterr()
    lines = Path("out.csv").read_text(encoding="utf-8").splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines] == text.splitlines()
    assert [line.rsplit(",", 1)[1] == "" for line in lines] == [False, False, True, True]
