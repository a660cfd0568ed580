"""The command line: report, test, compare, fit, apply and demo.

Exit codes: 0 done; 2 the input cannot be used, and one line on standard error says why; 130 interrupted.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from statsmodels.iolib.table import SimpleTable

from calstat._cli.arguments import SCORES, Run, make_parser
from calstat._cli.files import FileError, numeric_column, read_table, select_columns, written_whole
from calstat._input.labels import event_place
from calstat._report import CalibrationReport, report
from calstat._results import format_number, format_pvalue, make_summary, number_table
from calstat.base import load
from calstat.binary import BetaCalibration, LogisticCalibration, PlattScaling
from calstat.composite import CrossValidatedCalibration
from calstat.datasets import load_heart_disease
from calstat.diagnostics import calibration_tests, compare_forecasts
from calstat.exceptions import CalstatError, CalstatWarning, LabelError
from calstat.metrics import evaluate
from calstat.multiclass import DirichletCalibration, MatrixScaling, TemperatureScaling, VectorScaling
from calstat.nonparametric import HistogramBinning, IsotonicCalibration
from calstat.penalties import L2, ODIR

# Each method with the options that differ from the defaults of its class: columns named by --probs hold
# probabilities. Any: the constructors differ in their options, which `_options` checks.
METHODS: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
    "logistic": (LogisticCalibration, {}),
    "beta": (BetaCalibration, {}),
    "platt": (PlattScaling, {}),
    "isotonic": (IsotonicCalibration, {}),
    "histogram": (HistogramBinning, {}),
    "temperature": (TemperatureScaling, {"scores": "probability"}),
    "vector": (VectorScaling, {"scores": "probability"}),
    "matrix": (MatrixScaling, {"scores": "probability"}),
    "dirichlet": (DirichletCalibration, {}),
}
_FOR_ONE_COLUMN = ("logistic", "beta", "isotonic")  # what `compare` tries unless told
_FOR_CLASSES = ("temperature", "vector", "dirichlet")
_COMPARED = ("log_loss", "brier_score", "ece", "ece[confidence]", "ece[classwise]")
_PENALTIES = {"l2": L2, "odir": ODIR}
_SUFFIXES = {"mean": "", "mean_se": "_se", "mean_ci_lower": "_low", "mean_ci_upper": "_high"}
_NOT_OPTIONS = {"y", "p", "event", "classes", "freq_weights", "groups", "missing"}  # have arguments of their own


_DEMO_BEFORE = """\
297 patients had their coronary arteries examined. Before that, a naive Bayes classifier gave each a probability
of heart disease, from ten-fold cross-validation. Can these probabilities be believed?
(Data: UCI Machine Learning Repository, Heart Disease, CC BY 4.0.)
"""

_DEMO_AFTER = """
Written:
  {html}  this report as a web page
  {png}  the reliability diagram
  {csv}  the data

Put the probabilities right:
  calstat fit {csv} --outcome disease --probs p_naive_bayes --method beta --out {map}
Compare with a logistic regression:
  calstat report {csv} --outcome disease --probs p_logistic"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """Complete rows of a table: outcome `y`, `p` (one column or several), weights and clusters or None.

    `also` holds further predictions to compare with `p`, `by` the subgroup of each row.
    """

    y: pd.Series
    p: pd.Series | pd.DataFrame
    weights: pd.Series | None
    groups: pd.Series | None
    also: dict[str, pd.Series]
    by: pd.Series | None
    event: Any


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")  # a label that the terminal cannot show must not stop the report
    args = make_parser(COMMANDS, list(METHODS)).parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("always", CalstatWarning)
        warnings.showwarning = _show_warning
        try:
            args.run(args)
            sys.stdout.flush()
        except (FileError, CalstatError) as error:
            _tell(_in_words_of_the_user(error, args))
            return 2
        except BrokenPipeError:  # the reader of our output, say `head`, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            return 130
    return 0


def _in_words_of_the_user(error: Exception, args: argparse.Namespace) -> str:
    """The message, with the columns and arguments that the user named beside those of the Python functions."""
    message = str(error)
    if getattr(args, "outcome", None):
        message = message.replace("`y`", f"`y` (column '{args.outcome}')", 1)
        message = message.replace("`p`", f"`p` (column {', '.join(map(repr, args.probs))})", 1)
    if getattr(args, "by", None):
        message = message.replace("`groups`", f"`groups` (column '{args.by}')", 1)
    if hasattr(args, "stop_after"):
        message = message.replace("`n_resamples`", "`n_resamples` (--draws)").replace(
            "_after`", "_after` (--stop-after)"
        )
    if "must sum to 1" in message and hasattr(args, "also"):
        message += " To set several models side by side, give one to --probs and the others to --also."
    if isinstance(error, LabelError) and "event=" in message:
        message += " On the command line that is --event LABEL."
    return message


def _tell(message: str) -> None:
    """One line on standard error."""
    print(f"calstat: {' '.join(message.split())}", file=sys.stderr)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show a warning without the source line that raised it."""
    _tell(f"warning: {message}")


# -- commands ----------------------------------------------------------------------------------------


def _run_report(args: argparse.Namespace) -> None:
    """``calstat report``."""
    data = _read_predictions(args)
    made = report(
        data.y,
        data.p,
        bins=args.bins,
        strategy=args.strategy,
        freq_weights=data.weights,
        event=data.event,
        alpha=args.alpha,
        rng=args.seed,
        models=data.also,
        by=data.by,
        title=f"Calibration of {', '.join(args.probs)}",
    )
    _write_report(made, args.html, args.png)
    print(_report_json(made) if args.json else made.summary())
    for name in (args.html, args.png):
        if name is not None and not args.json:
            print(f"Written: {name}")


def _run_test(args: argparse.Namespace) -> None:
    """``calstat test``."""
    data = _read_predictions(args)
    made = calibration_tests(
        data.y,
        data.p,
        freq_weights=data.weights,
        event=data.event,
        n_resamples=args.draws,
        stop_after=args.stop_after,
        rng=args.seed,
    )
    print(json.dumps(_records(made.to_frame()), ensure_ascii=False, indent=1) if args.json else made)


def _run_compare(args: argparse.Namespace) -> None:
    """``calstat compare``."""
    data = _read_predictions(args)
    one_column = isinstance(data.p, pd.Series)
    event = {} if data.event is None else {"event": data.event}
    given = evaluate(data.y, data.p, freq_weights=data.weights, **event)
    columns, differences = {"as given": given["value"]}, {}
    for method in args.methods or (_FOR_ONE_COLUMN if one_column else _FOR_CLASSES):
        model, defaults = METHODS[method]
        if event and "event" not in inspect.signature(model).parameters:
            raise FileError(f"--event is for two outcomes; the method {method} takes a column for each class.")
        options = {**defaults, **event, "folds": args.folds, "shuffle": True, "rng": args.seed}
        fitted = CrossValidatedCalibration(data.y, data.p, model, freq_weights=data.weights, **options).fit()
        columns[method] = fitted.metrics["out_of_fold"]
        if args.score is not None:
            test = compare_forecasts(
                data.y, fitted.oof_predictions, data.p, score=args.score, freq_weights=data.weights, **event
            )
            found = {name: test.details[name] for name in ("difference", "ci_low", "ci_high")}
            differences[method] = {**found, "pvalue": test.pvalue}
    table = pd.DataFrame(columns).T
    table = table[[name for name in _COMPARED if name in table.columns]].rename_axis("map")
    changes = pd.DataFrame.from_dict(differences, orient="index")
    if args.json:
        print(json.dumps(_records(table.join(changes)), ensure_ascii=False, indent=1))
        return
    cells = [[format_number(value) for value in row] for row in table.to_numpy(dtype=float)]
    tables = [number_table(cells, list(table.columns), list(table.index), title="Calibration maps")]
    notes = [
        f"Out of fold: each row is predicted by a map fitted without its fold ({args.folds} folds). Small is good."
    ]
    if differences:
        tables.append(_difference_table(changes, SCORES[args.score]))
        notes.append("Differences are paired, row by row, and take the predictions out of fold as they are.")
    print(make_summary(tables, notes))


def _difference_table(changes: pd.DataFrame, score: str) -> SimpleTable:
    """The differences of maps from the predictions as given; negative: the map is better."""
    cells = [[*map(format_number, numbers), format_pvalue(p)] for *numbers, p in changes.to_numpy(dtype=float).tolist()]
    headers = ["difference", "ci_low", "ci_high", "p"]
    return number_table(cells, headers, list(changes.index), title=f"Less the {score} of the predictions as given")


def _run_fit(args: argparse.Namespace) -> None:
    """``calstat fit``."""
    model, defaults = METHODS[args.method]
    options = {**defaults, **_options(args.option, model)}
    if args.event is not None and "event" not in inspect.signature(model).parameters:
        raise FileError(f"--event is for two outcomes; the method {args.method} takes a column for each class.")
    if args.formula is not None:
        if args.outcome is not None or args.probs is not None:
            raise FileError("--formula names the columns itself; leave out --outcome and --probs.")
        table = read_table(args.file, sep=args.sep)
        if args.event is not None:
            outcome = re.sub(r"^Q\((['\"])(.*)\1\)$", r"\2", args.formula.partition("~")[0].strip())
            options["event"] = _event_label(select_columns(table, [outcome], args.file)[outcome], args)
        built = model.from_formula(args.formula, data=table, freq_weights=args.weights, groups=args.cluster, **options)
    elif args.outcome is not None and args.probs is not None:
        data = _read_predictions(args)
        if data.event is not None:
            options["event"] = data.event
        scores = data.p.to_frame() if isinstance(data.p, pd.Series) else data.p
        built = model(data.y, scores, freq_weights=data.weights, groups=data.groups, **options)
    else:
        raise FileError("The columns are not named: give --outcome and --probs, or --formula 'y ~ p'.")
    result = built.fit() if args.cluster is None else built.fit(cov_type="cluster")
    with written_whole(args.out) as path:
        path.write_text(result.to_json(), encoding="utf-8")
    print(result.summary())
    print(f"\nThe map is in {args.out}. To use it: calstat apply {args.out} NEW.csv --out calibrated.csv")


def _run_apply(args: argparse.Namespace) -> None:
    """``calstat apply``."""
    try:
        fitted = load(args.map)
    except OSError as error:
        raise FileError(f"{args.map} cannot be read: {error.strerror}.") from error
    except CalstatError as error:
        raise FileError(f"{args.map} is no calibration map: {error}") from error
    # Other columns go through as they are written, but into Parquet, whose columns have types.
    table = read_table(args.file, sep=args.sep, as_text=not args.out.endswith(".parquet"))
    scores = select_columns(table, fitted.score_names, args.file)
    numbers = pd.DataFrame({name: numeric_column(scores, name) for name in fitted.score_names})
    added = _calibrated(fitted, numbers, args.alpha if args.intervals else None)
    if taken := [name for name in added.columns if name in table.columns]:
        raise FileError(f"{args.file} already has a column '{taken[0]}'.")
    table = table.join(added)
    if args.out == "-":
        table.to_csv(sys.stdout, index=False)
        return
    with written_whole(args.out) as path:
        if path.suffix == ".parquet":
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False)
    print(f"Written: {args.out} ({len(table)} rows)")


def _calibrated(fitted: Any, table: pd.DataFrame, alpha: float | None) -> pd.DataFrame:
    """The columns to add: calibrated probabilities and, with a level `alpha`, their errors and limits."""
    if alpha is None:
        values = fitted.predict(table)
        if isinstance(values, pd.Series):
            return values.to_frame("calibrated")
        if getattr(fitted, "nonevent", None) is not None:  # two columns of one event
            place = event_place(values.columns, fitted.event, fitted.nonevent)
            return values.iloc[:, place].to_frame("calibrated")
        return values.set_axis([f"calibrated_{label}" for label in fitted.classes], axis=1)
    if not hasattr(fitted, "get_prediction"):
        raise FileError(f"--intervals: a map of kind {fitted.kind} has no intervals.")
    frame = fitted.get_prediction(table).summary_frame(alpha=alpha)
    if isinstance(frame.index, pd.MultiIndex):  # a line per row and class
        frame = frame.unstack(sort=False).swaplevel(axis="columns")  # noqa: PD010  (a pivot table would sort the rows)
        return frame.set_axis([f"calibrated_{label}{_SUFFIXES[what]}" for label, what in frame.columns], axis=1)
    return frame.set_axis([f"calibrated{_SUFFIXES[what]}" for what in frame.columns], axis=1)


def _run_demo(args: argparse.Namespace) -> None:
    """``calstat demo``."""
    folder = Path(args.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made: {error.strerror}.") from error
    table = load_heart_disease()
    csv, html, png = folder / "heart_disease.csv", folder / "report.html", folder / "reliability.png"
    with written_whole(csv) as path:
        table.to_csv(path, index=False)
    made = report(table["disease"], table["p_naive_bayes"], title="Calibration of p_naive_bayes for disease")
    _write_report(made, html, png)
    print(_DEMO_BEFORE)
    print(made.summary())
    print(_DEMO_AFTER.format(csv=csv, html=html, png=png, map=folder / "map.json"))


def _write_report(made: CalibrationReport, html: str | Path | None, png: str | Path | None) -> None:
    """Write the report as HTML and its diagram as PNG, where asked for: both or neither."""
    with ExitStack() as files:
        page = None if html is None else files.enter_context(written_whole(html))
        picture = None if png is None else files.enter_context(written_whole(png))
        if page is not None:
            made.to_html(page)
        if picture is not None:
            figure = made.plot()
            figure.savefig(picture, format="png", dpi=150)
            plt.close(figure)


def _report_json(made: CalibrationReport) -> str:
    """The numbers and sentences of a report as JSON; what does not exist is null."""
    content = {
        "title": made.title,
        "data": dict(made.data),
        "results": _records(made.to_frame()),
        "bins": _records(made.bins),
        "classes": None if made.classes is None else _records(made.classes),
        "groups": None if made.groups is None else _records(made.groups.table),
        "findings": list(made.findings),
        "notes": list(made.notes),
    }
    return json.dumps(content, ensure_ascii=False, indent=1)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as dicts that JSON can hold: NaN becomes None, an infinite number its name."""
    table = table if isinstance(table.index, pd.RangeIndex) else table.reset_index()
    return [{str(k): _json_value(v) for k, v in row.items()} for row in table.astype(object).to_dict("records")]


def _json_value(value: Any) -> Any:
    """One cell: a finite number as it is, NaN as None, all else as text."""
    if isinstance(value, bool | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    return str(value)


# -- reading -----------------------------------------------------------------------------------------


def _read_predictions(args: argparse.Namespace) -> Predictions:
    """The complete rows of the table that the arguments name."""
    cluster, by = getattr(args, "cluster", None), getattr(args, "by", None)
    also = getattr(args, "also", [])
    others = [name for name in (args.weights, cluster, by) if name is not None]
    table = read_table(args.file, [args.outcome, *args.probs, *also, *others], sep=args.sep)
    numeric = [*args.probs, *also, *filter(None, [args.weights])]
    numbers = {name: numeric_column(table, name) for name in numeric}
    table = table.assign(**numbers)
    complete = table.notna().all(axis=1)
    if not complete.any():
        raise FileError(f"{args.file} has no row without a missing value in {', '.join(table.columns)}.")
    if dropped := int((~complete).sum()):
        _tell(f"note: {dropped} of {len(table)} rows have a missing value and were left out.")
        table = table[complete].infer_objects()
    return Predictions(
        y=table[args.outcome],
        p=table[args.probs[0]] if len(args.probs) == 1 else table[args.probs],
        weights=None if args.weights is None else table[args.weights],
        groups=None if cluster is None else table[cluster],
        also={name: table[name] for name in also},
        by=None if by is None else table[by],
        event=None if args.event is None else _event_label(table[args.outcome], args),
    )


def _event_label(y: pd.Series, args: argparse.Namespace) -> Any:
    """The label of `y` that the user typed as text; numbers match by value, since 1 is 1.0 beside missing ones."""
    labels = y.dropna().unique().tolist()
    for label in labels:
        if str(label) == args.event:
            return label
        if isinstance(label, float) and label.is_integer() and str(int(label)) == args.event:
            return label
    shown = ", ".join(map(str, labels[:12])) + (", ..." if len(labels) > 12 else "")
    raise FileError(f"'{args.event}' (--event) is not a label of column '{y.name}', whose labels are {shown}.")


def _options(given: Sequence[str], model: Any) -> dict[str, Any]:
    """Read NAME=VALUE options of a map: numbers, true, false, none and penalties are read as such."""
    known = [name for name in inspect.signature(model).parameters if name not in _NOT_OPTIONS]
    options = {}
    for text in given:
        name, _, value = text.partition("=")
        if name not in known or not value:
            raise FileError(f"'{text}' (--option) is not NAME=VALUE with a NAME out of {', '.join(known)}.")
        options[name] = _value(value)
    return options


def _value(text: str) -> Any:
    """A number, truth value, None, penalty with its strength, such as odir:0.01, or else text."""
    words: dict[str, Any] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    kind, _, strength = text.lower().partition(":")
    try:
        return _PENALTIES[kind](float(strength)) if kind in _PENALTIES else json.loads(text)
    except ValueError as error:
        if kind in _PENALTIES:
            raise FileError(f"'{text}' (--option) is not a penalty with its strength, such as {kind}:0.01.") from error
        return text


COMMANDS: Mapping[str, Run] = {
    "demo": _run_demo,
    "report": _run_report,
    "test": _run_test,
    "compare": _run_compare,
    "fit": _run_fit,
    "apply": _run_apply,
}
