"""Tables in, files out, for the command line: every fault is one clear line, nothing is left half-written."""

from __future__ import annotations

import difflib
import gzip
import io
import sys
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pandas as pd

from calstat._files import whole_file

_HEAD = 1 << 16  # bytes looked at to tell text from binary data
_SHOWN = 12  # column names listed in a message


class FileError(Exception):
    """A file cannot be used; the message is one line for the person who named it."""


# What stands for no value in a column of numbers.
_MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "None", "null", "NULL")


def read_table(
    name: str, columns: Sequence[str] | None = None, *, sep: str = ",", as_text: bool = False
) -> pd.DataFrame:
    """
    Read a table from CSV (plain or .gz), Parquet, or standard input (`name` = "-").

    With `columns` only those are read. With `as_text` the cells of a CSV file stay as they are written. A missing
    column, an empty or binary file, and a table without rows raise `FileError`.
    """
    shown = "standard input" if name == "-" else name
    try:
        with _open(name, shown) as stream:
            head = stream.read(_HEAD)
            stream.seek(0)
            if not head.strip():
                raise FileError(f"{shown} is empty.")
            if head.startswith(b"PAR1"):
                table = _read_parquet(stream, shown, columns)
            else:
                _require_text(head, shown)
                table = _read_csv(stream, shown, columns, sep, as_text=as_text)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"{shown} cannot be read: {_reason(error)}.") from error
    if table.empty:
        raise FileError(f"{shown} has column names but no rows.")
    return table


def _open(name: str, shown: str) -> BinaryIO:
    """A seekable byte stream."""
    if name == "-":
        return io.BytesIO(sys.stdin.buffer.read())
    path = Path(name)
    if not path.exists():
        raise FileError(f"{shown} does not exist.")
    if path.is_dir():
        raise FileError(f"{shown} is a folder; a CSV or Parquet file is needed.")
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    return path.open("rb")


def _require_text(head: bytes, shown: str) -> None:
    """Refuse bytes that are no text."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileError(f"{shown} is UTF-16 text; save it as UTF-8.")
    if b"\0" in head:
        raise FileError(f"{shown} holds binary data; a CSV or Parquet file is needed.")


def _read_parquet(stream: BinaryIO, shown: str, columns: Sequence[str] | None) -> pd.DataFrame:
    """Read the wanted columns of a Parquet file."""
    try:
        table = pd.read_parquet(stream)
    except ImportError as error:
        raise FileError(f"{shown} is a Parquet file, which needs pyarrow: pip install 'calstat[parquet]'.") from error
    except ValueError as error:  # pyarrow's ArrowInvalid is a ValueError
        raise FileError(f"{shown} cannot be read as Parquet: {_reason(error)}.") from error
    # Rows are told apart by their place; an index with a name is a column like others.
    named = [name for name in table.index.names if name is not None and name not in table.columns]
    table = (table.reset_index(level=named) if named else table).reset_index(drop=True)
    table.columns = table.columns.map(str)
    return select_columns(table, columns, shown)


def _read_csv(stream: BinaryIO, shown: str, columns: Sequence[str] | None, sep: str, *, as_text: bool) -> pd.DataFrame:
    """Read the wanted columns of a CSV file."""
    try:
        with warnings.catch_warnings():
            # Rows longer than the header would lose their last fields under this warning. `usecols` would
            # lose them without one, so every column is read.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            _refuse_doubles(stream, shown, sep)
            cells: dict[str, Any] = {"dtype": str, "na_filter": False} if as_text else {"low_memory": False}
            table = pd.read_csv(stream, sep=sep, index_col=False, encoding="utf-8-sig", **cells)
    except UnicodeDecodeError as error:
        raise FileError(f"{shown} is not UTF-8 text ({error.reason}); save it as UTF-8.") from error
    except pd.errors.ParserWarning as error:
        raise FileError(f"{shown} has rows with more fields than it has column names.") from error
    except pd.errors.ParserError as error:
        raise FileError(f"{shown} is not a table: {_reason(error)}.") from error
    return select_columns(table, columns, shown)


def _refuse_doubles(stream: BinaryIO, shown: str, sep: str) -> None:
    """Refuse two columns of one name, of which pandas would rename the second."""
    header = pd.read_csv(stream, sep=sep, header=None, nrows=1, dtype=str, encoding="utf-8-sig", keep_default_na=False)
    stream.seek(0)
    names = header.iloc[0] if len(header) else pd.Series(dtype=str)
    double = names[names.duplicated() & (names != "")]
    if len(double):
        raise FileError(f"{shown} has two columns named '{double.iloc[0]}'; rename one of them.")


def select_columns(table: pd.DataFrame, wanted: Sequence[str] | None, shown: str) -> pd.DataFrame:
    """Keep the wanted columns; name the first that is missing, the likeliest one meant, and those present."""
    if wanted is None:
        return table
    names = [str(name) for name in table.columns]
    for column in wanted:
        if column in names:
            continue
        folded = {name.casefold().strip(): name for name in names}
        close = difflib.get_close_matches(column.casefold().strip(), list(folded), n=1)
        hint = f" Did you mean '{folded[close[0]]}'?" if close else ""
        if len(names) == 1 and (used := next((s for s in (";", "\t", "|") if s in names[0]), None)):
            hint = f" Its fields seem to be separated by {used!r}: add --sep {used!r}."
        elif all(_is_number(name) for name in names):
            hint = " Its first line must hold the column names."
        listed = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        raise FileError(f"{shown} has no column '{column}'.{hint} Columns: {listed}.")
    return table[list(dict.fromkeys(wanted))]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def numeric_column(table: pd.DataFrame, column: str) -> pd.Series:
    """One column as float64; text in it raises `FileError` with the row and a remedy."""
    values = table[column]
    if pd.api.types.is_string_dtype(values.dtype):
        values = values.mask(values.isin(_MISSING))
    if isinstance(values.dtype, pd.BooleanDtype) or values.dtype == bool:
        return values.astype("Float64").astype(float)
    numbers = pd.to_numeric(values, errors="coerce")
    bad = np.flatnonzero((numbers.isna() & values.notna()).to_numpy())
    if bad.size:
        first = str(values.iloc[bad[0]])
        hint = ""
        if first.strip().endswith("%"):
            hint = " Divide percentages by 100."
        elif _is_number(first.replace(",", ".")):
            hint = " Write decimals with a point."
        raise FileError(
            f"Column '{column}' must hold numbers; {bad.size} of {len(values)} values do not, "
            f"the first is '{first}' in row {bad[0] + 1}.{hint}"
        )
    return numbers.astype(float)


def _reason(error: BaseException) -> str:
    """The first line of a foreign error message, without its full stop."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text.strip() or type(error).__name__).splitlines()[0].rstrip(".")


@contextmanager
def written_whole(name: str | Path) -> Iterator[Path]:
    """
    `whole_file`, with `FileError` for a place that cannot be written to.

    A folder that does not exist, or may not be written to, is such a place.
    """
    if Path(name).is_dir():
        raise FileError(f"{name} is a folder; a file name is needed.")
    try:
        with whole_file(name) as path:
            yield path
    except OSError as error:
        raise FileError(f"{name} cannot be written: {_reason(error)}.") from error
