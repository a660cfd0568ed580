"""Reading tables and writing files: what is read, what is refused and in which words."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import calstat as cs
from calstat._cli.files import FileError, numeric_column, read_table, written_whole

TABLE = pd.DataFrame({"y": [0, 1, 1], "p": [0.1, 0.8, 0.6], "site": ["é", "😀", 'a "b"']})


def _write(path: Path, content: bytes | str) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_reads_every_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        TABLE.to_parquet(path)
    else:
        TABLE.to_csv(path, index=False)
    pd.testing.assert_frame_equal(read_table(str(path)), TABLE)
    assert list(read_table(str(path), ["p", "y"]).columns) in (["p", "y"], ["y", "p"])


def test_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TABLE.to_csv(index=False).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    pd.testing.assert_frame_equal(read_table("-"), TABLE)


def test_reads_a_byte_order_mark_another_separator_and_odd_names(tmp_path: Path) -> None:
    name = _write(tmp_path / "t.csv", '\ufeff"the \'p\' ""of"" é";y\n0.5;1\n')
    table = read_table(name, ["the 'p' \"of\" é"], sep=";")
    assert table.iloc[0, 0] == 0.5


REFUSED = {
    "empty": (b"", r"t\.csv is empty\."),
    "blank": (b" \n\n", r"t\.csv is empty\."),
    "header only": (b"y,p\n", r"has column names but no rows\."),
    "binary": (b"\x89PNG\0\0\x01", r"holds binary data; a CSV or Parquet file is needed\."),
    "utf-16": ("y,p\n1,0.5\n".encode("utf-16"), r"is UTF-16 text; save it as UTF-8\."),
    "latin-1": ("y,p,né\n1,0.5,é\n".encode("latin-1"), r"is not UTF-8 text .*; save it as UTF-8\."),
    "ragged": (b"y,p\n1,0.5\n0,0.2,3\n", r"is not a table: .*line 3"),
    "all rows too long": (b"y,p\n1,0.5,7\n0,0.2,3\n", r"rows with more fields than it has column names"),
    "wrong column": (b"y,Prob \n1,0.5\n", r"no column 'p'\. Columns: y, Prob"),
    "close column": (b"y,P\n1,0.5\n", r"no column 'p'\. Did you mean 'P'\? Columns: y, P\."),
    "no header": (b"1,0.5\n0,0.2\n", r"no column 'y'\. Its first line must hold the column names\."),
    "separator": (b"y;p\n1;0.5\n", r"no column 'y'\. Its fields seem to be separated by ';': add --sep ';'\."),
    "broken parquet": (b"PAR1 and no more", r"cannot be read as Parquet: "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_in_one_clear_line(tmp_path: Path, case: str) -> None:
    content, message = REFUSED[case]
    with pytest.raises(FileError, match=message) as caught:
        read_table(_write(tmp_path / "t.csv", content), ["y", "p"])
    assert "\n" not in str(caught.value)


def test_refuses_a_missing_file_a_folder_and_a_broken_archive(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"nowhere\.csv does not exist\."):
        read_table(str(tmp_path / "nowhere.csv"))
    with pytest.raises(FileError, match="is a folder"):
        read_table(str(tmp_path))
    with pytest.raises(FileError, match="cannot be read: Not a gzipped file"):
        read_table(_write(tmp_path / "t.csv.gz", "y,p\n"))
    whole = gzip.compress(b"y,p\n" + os.urandom(200).hex().encode())
    with pytest.raises(FileError, match="cannot be read: "):
        read_table(_write(tmp_path / "cut.csv.gz", whole[:-40]))


def test_lists_a_dozen_columns_and_counts_the_rest(tmp_path: Path) -> None:
    name = _write(tmp_path / "t.csv", ",".join(f"x{i}" for i in range(40)) + "\n" + ",".join(["1"] * 40) + "\n")
    with pytest.raises(FileError, match=r"x11 and 28 more\.$"):
        read_table(name, ["outcome"])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, False], [1.0, 0.0]),
        (pd.array([1, None], dtype="Int64"), [1.0, np.nan]),
        (pd.array([True, None], dtype="boolean"), [1.0, np.nan]),
        (["0.5", None], [0.5, np.nan]),
    ],
)
def test_numeric_column_reads_numbers(values: object, expected: list[float]) -> None:
    column = numeric_column(pd.DataFrame({"p": values}), "p")
    assert column.dtype == np.float64
    np.testing.assert_array_equal(column, expected)


@pytest.mark.parametrize(
    ("text", "hint"),
    [("high", ""), ("85%", " Divide percentages by 100."), ("0,7", " Write decimals with a point.")],
)
def test_numeric_column_names_the_first_text(text: str, hint: str) -> None:
    table = pd.DataFrame({"p": ["0.5", text, "0.1"]})
    with pytest.raises(FileError) as caught:
        numeric_column(table, "p")
    assert str(caught.value) == (
        f"Column 'p' must hold numbers; 1 of 3 values do not, the first is '{text}' in row 2.{hint}"
    )


def test_written_whole_leaves_the_old_file_when_the_block_fails(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old")

    def fail_half_way() -> None:
        with written_whole(target) as path:
            path.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_written_whole_replaces_and_keeps_links(tmp_path: Path) -> None:
    target, link = tmp_path / "real.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    with written_whole(link) as path:
        path.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_permissions_are_those_that_open_gives(tmp_path: Path) -> None:
    fitted = cs.LogisticCalibration([0, 1, 0, 1, 1, 0], [0.1, 0.3, 0.4, 0.6, 0.8, 0.7]).fit()
    for umask, mode in ((0o022, 0o644), (0o027, 0o640), (0o077, 0o600)):
        before = os.umask(umask)
        try:
            with written_whole(tmp_path / f"table{mode}") as path:
                path.write_text("new")
            fitted.save(tmp_path / f"map{mode}")
        finally:
            os.umask(before)
        for name in ("table", "map"):
            assert stat.S_IMODE((tmp_path / f"{name}{mode}").stat().st_mode) == mode
    shared = tmp_path / "shared"
    shared.write_text("old")
    shared.chmod(0o664)
    fitted.save(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o664
    assert cs.load(shared).predict(0.3) == fitted.predict(0.3)


def test_written_whole_writes_to_a_device_in_place() -> None:
    with written_whole(os.devnull) as path:
        path.write_text("gone")
    assert not Path(os.devnull).is_file()


def test_written_whole_tells_what_is_wrong_with_the_place(tmp_path: Path) -> None:
    nowhere = written_whole(tmp_path / "no" / "map.json")
    with pytest.raises(FileError, match=r"map\.json cannot be written: No such file or directory\."):
        nowhere.__enter__()
    folder = written_whole(tmp_path)
    with pytest.raises(FileError, match="is a folder"):
        folder.__enter__()
