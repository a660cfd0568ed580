"""The arguments of the command line and the pages that ``--help`` shows."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import TypeAlias

Run: TypeAlias = Callable[[argparse.Namespace], None]

# Scores that `compare` tests the difference in, and how they are called.
SCORES = {"brier": "Brier score", "log": "log loss", "squared_ece": "squared calibration error"}

_DESCRIPTION = """\
Is a model's predicted probability right, what is wrong with it, and how is it put right?

  calstat demo                                                   see it work on a real data set
  calstat report scores.csv --outcome y --probs p                is it calibrated?
  calstat compare scores.csv --outcome y --probs p               which map would put it right?
  calstat fit scores.csv --outcome y --probs p --out map.json    learn that map
  calstat apply map.json new.csv --out calibrated.csv            use it on new predictions

A table is a CSV file (or .csv.gz, or Parquet) with one row per case and named columns: the outcome that happened
and the probability that the model gave. '-' reads it from standard input. The predictions must come from a model
that was not fitted on the same rows, or they look better than they are.
"""

_REPORT = """\
Print how well predicted probabilities agree with outcomes: calibration in the large, slope, errors with intervals,
tests, scores, bins, and what they mean in words.

examples:
  calstat report scores.csv --outcome died --probs risk --html report.html --png diagram.png
  calstat report scores.csv --outcome status --event dead --probs risk
  calstat report scores.csv --outcome died --probs risk --also old_score new_score
  calstat report scores.csv --outcome died --probs risk --by hospital
  calstat report counts.csv --outcome y --probs p --weights n
  cat scores.csv | calstat report - --outcome y --probs p --json
"""

_TEST = """\
Test whether predicted probabilities are calibrated: a table of tests, with p-values adjusted for their number, and what
each of them can see. They see different errors and need not agree; a large p-value does not show that a model is
calibrated.

examples:
  calstat test scores.csv --outcome y --probs p
  calstat test scores.csv --outcome y --probs p --json
  calstat test scores.csv --outcome y --probs p --draws 100000 --stop-after 20
"""

_COMPARE = """\
Compare calibration maps by how well they predict rows that they were not fitted on, with cross-validation.

examples:
  calstat compare scores.csv --outcome y --probs p
  calstat compare scores.csv --outcome y --probs p --methods logistic beta --folds 5
  calstat compare scores.csv --outcome y --probs p --score squared_ece
  calstat compare cars.csv --outcome vehicle --probs p_bus p_opel p_saab p_van
"""

_FIT = """\
Fit a calibration map to outcomes and predicted probabilities, print its coefficients, standard errors and tests
against the identity map (the map of a calibrated model), and store it as JSON.

methods for one column of probabilities:
  logistic     intercept and slope on the log odds: shifts and stretches; the usual recalibration of a risk model
  beta         three parameters: may treat high and low probabilities differently
  platt        for scores that are not probabilities, such as margins of a support vector machine
  isotonic     any rising curve; needs many rows
  histogram    the event rate of each bin
methods for a column per class:
  temperature  one number that makes all probabilities sharper or flatter (also for one column)
  vector       a slope and a constant for each class
  dirichlet    every class may draw on every other; --option penalty=odir:0.01 for many classes
  matrix       the same on logits: --option scores=logit

examples:
  calstat fit scores.csv --outcome y --probs p --method beta --out map.json
  calstat fit scores.csv --formula "y ~ p" --method logistic --option slope=1 --out map.json
  calstat fit scores.csv --outcome y --probs p --option penalty=firth --out map.json
  calstat fit scores.csv --outcome y --probs p --cluster hospital --out map.json
  calstat fit cars.csv --outcome vehicle --probs p_bus p_opel p_saab p_van --method dirichlet --out map.json
"""

_APPLY = """\
Add calibrated probabilities to a table of new predictions: the column 'calibrated', or one for each class. The table
needs the columns that the map was fitted on; a row without a value there keeps an empty cell. A stored map is plain
JSON: reading it runs no code.

examples:
  calstat apply map.json new.csv --out calibrated.csv
  calstat apply map.json new.csv --out calibrated.csv --intervals
  calstat apply map.json - --out - < new.csv > calibrated.csv
"""

_DEMO = """\
Report on the shipped heart disease data: 297 patients, the probabilities of a naive Bayes classifier. Writes the
data, the report as a web page and the reliability diagram to a folder.
"""


def make_parser(commands: Mapping[str, Run], methods: Sequence[str]) -> argparse.ArgumentParser:
    """The arguments of all commands; `commands` holds what each runs, `methods` the names of the maps."""
    parser = argparse.ArgumentParser(
        prog="calstat", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"calstat {version('calstat')}")
    added = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")

    def command(name: str, text: str, line: str) -> argparse.ArgumentParser:
        """One subcommand; `text` is its help page, `line` its entry in the list of commands."""
        made: argparse.ArgumentParser = added.add_parser(
            name, help=line, description=text, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        made.set_defaults(run=commands[name])
        return made

    demo = command("demo", _DEMO, "a report on shipped data")
    demo.add_argument("--out", default="calstat-demo", metavar="FOLDER", help="default: calstat-demo")
    _report_arguments(command("report", _REPORT, "how well probabilities agree with outcomes"))
    test = command("test", _TEST, "tests of calibration")
    _add_table(test, required=True)
    test.add_argument("--draws", type=int, default=999, metavar="N", help="draws of labels (default: 999)")
    test.add_argument(
        "--stop-after",
        type=int,
        metavar="N",
        help="end the draws of a kernel, CORP or ECE test at N that are as large as the observed value",
    )
    _add_json(test)
    _add_seed(test)
    _compare_arguments(command("compare", _COMPARE, "which calibration map predicts best"), methods)
    _fit_arguments(command("fit", _FIT, "learn a calibration map and store it"), methods)
    _apply_arguments(command("apply", _APPLY, "use a stored map on new predictions"))
    return parser


def _report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what ``calstat report`` takes."""
    _add_table(parser, required=True)
    parser.add_argument("--also", nargs="+", default=[], metavar="COLUMN", help="predictions to compare with --probs")
    parser.add_argument("--by", metavar="COLUMN", help="subgroups, such as sex or hospital, each assessed by itself")
    parser.add_argument("--html", metavar="FILE", help="write the report as one web page")
    parser.add_argument("--png", metavar="FILE", help="write the reliability diagram as a picture")
    _add_json(parser)
    parser.add_argument("--bins", type=int, default=10, metavar="N", help="number of bins (default: 10)")
    parser.add_argument(
        "--strategy",
        choices=["equal_width", "equal_freq"],
        default="equal_width",
        help="bins of equal width (default) or with equally many rows",
    )
    _add_alpha(parser)
    _add_seed(parser)


def _compare_arguments(parser: argparse.ArgumentParser, methods: Sequence[str]) -> None:
    """Add what ``calstat compare`` takes."""
    _add_table(parser, required=True)
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=methods,
        metavar="METHOD",
        help=f"out of {', '.join(methods)} (default: three that suit the columns)",
    )
    parser.add_argument("--folds", type=int, default=10, metavar="N", help="number of folds (default: 10)")
    parser.add_argument(
        "--score", choices=SCORES, help="test the difference of each map from the predictions as given in this score"
    )
    _add_json(parser)
    _add_seed(parser)


def _fit_arguments(parser: argparse.ArgumentParser, methods: Sequence[str]) -> None:
    """Add what ``calstat fit`` takes."""
    _add_table(parser, required=False)
    parser.add_argument("--formula", metavar="'Y ~ P'", help="instead of --outcome and --probs")
    parser.add_argument("--method", choices=methods, default="logistic", help="kind of map (default: logistic)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the map; may be repeated"
    )
    parser.add_argument("--cluster", metavar="COLUMN", help="standard errors robust to correlation within its groups")
    parser.add_argument("--out", required=True, metavar="FILE", help="file for the map (JSON)")


def _apply_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what ``calstat apply`` takes."""
    parser.add_argument("map", metavar="MAP", help="file written by calstat fit")
    parser.add_argument("file", metavar="TABLE", help="CSV, .csv.gz or Parquet; '-' is standard input")
    parser.add_argument("--out", required=True, metavar="FILE", help="CSV or Parquet; '-' is standard output")
    parser.add_argument("--intervals", action="store_true", help="add standard errors and confidence limits")
    _add_alpha(parser)
    _add_separator(parser)


def _add_table(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add the table of predictions and its columns."""
    parser.add_argument("file", metavar="TABLE", help="CSV, .csv.gz or Parquet; '-' is standard input")
    parser.add_argument("--outcome", required=required, metavar="COLUMN", help="what happened")
    parser.add_argument(
        "--probs", required=required, nargs="+", metavar="COLUMN", help="its probability; or a column per class"
    )
    parser.add_argument("--event", metavar="LABEL", help="the outcome that the probability is about; needed for text")
    parser.add_argument("--weights", metavar="COLUMN", help="how many cases each row stands for (whole numbers)")
    _add_separator(parser)


def _add_separator(parser: argparse.ArgumentParser) -> None:
    """Add the field separator of CSV files."""
    words = "field separator of a CSV file (default: ','); \\t or tab for a tab"
    parser.add_argument("--sep", type=_separator, default=",", metavar="CHAR", help=words)


def _separator(text: str) -> str:
    """One character; a tab can be written as a word, since shells pass two characters for its escape."""
    text = "\t" if text in {"\\t", "tab"} else text
    if len(text) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not one character")
    return text


def _add_json(parser: argparse.ArgumentParser) -> None:
    """Add the choice of output for scripts."""
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")


def _add_seed(parser: argparse.ArgumentParser) -> None:
    """Add the seed of all that is random, so that equal calls print equal numbers."""
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of what is drawn at random (default: 0)")


def _add_alpha(parser: argparse.ArgumentParser) -> None:
    """Add the level of intervals."""
    parser.add_argument(
        "--alpha", type=float, default=0.05, metavar="A", help="1 - confidence level of intervals (default: 0.05)"
    )
