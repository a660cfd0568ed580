"""What the documentation shows must work when pasted, and what is public must be documented."""

from __future__ import annotations

import doctest
import inspect
import re
import shlex
from pathlib import Path

import pytest

import calstat
from calstat import _cli
from calstat.base import CalibrationResults
from calstat.datasets import load_heart_disease

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
RUNNABLE = {"python", "bash"}


def _blocks(page: Path) -> list[tuple[str, str]]:
    """Language and content of the fenced code blocks that can be run."""
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [(language, code) for language, code in found if language in RUNNABLE]


@pytest.fixture
def user_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the pages speak of: past predictions and new ones."""
    table = load_heart_disease()[["disease", "p_naive_bayes"]].set_axis(["y", "p"], axis=1)
    table.iloc[:200].to_csv(tmp_path / "scores.csv", index=False)
    table.iloc[200:][["p"]].to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", [p for p in PAGES if _blocks(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_code_blocks_run_as_pasted(page: Path, user_folder: Path) -> None:
    """Python blocks of a page share one namespace, as they would in a session; `calstat` lines are run."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for language, code in _blocks(page):
        if language == "bash":
            for line in code.replace("\\\n", " ").splitlines():
                if line.startswith("calstat "):
                    assert _cli.main(shlex.split(line, comments=True)[1:]) == 0, line
        elif ">>>" in code:
            examples = doctest.DocTestParser().get_doctest(code, namespace, page.name, str(page), 0)
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
            runner.run(examples, clear_globs=False)
            assert runner.summarize(verbose=False).failed == 0
            namespace.update(examples.globs)
        else:
            exec(compile(code, str(page), "exec"), namespace)


def test_every_public_name_is_listed_in_the_reference() -> None:
    listed = set()
    for page in (ROOT / "docs" / "api").glob("*.md"):
        listed |= set(re.findall(r"^ {3}(\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE))
    modules = [calstat, calstat.datasets, calstat.metrics, calstat.plots]
    public = {n for m in modules for n in m.__all__ if not inspect.ismodule(getattr(m, n))}
    public |= {kind.__name__ for kind in CalibrationResults._kinds.values()}
    public |= {n for n, thing in vars(calstat.exceptions).items() if inspect.isclass(thing)}
    assert not public - listed


def test_local_links_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
