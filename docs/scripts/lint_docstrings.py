"""Check the docstrings of everything that the reference lists: ``python docs/scripts/lint_docstrings.py``.

The checks are those of ``[tool.numpydoc_validation]`` in pyproject.toml. Helpers that the reference does not list
carry a sentence, and are left to ruff.
"""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from numpydoc.validate import ERROR_MSGS, validate

ROOT = Path(__file__).resolve().parents[2]


def listed_names() -> Iterator[str]:
    """Full names in the autosummary lists of ``docs/api``, and the public members of the classes among them."""
    for page in sorted((ROOT / "docs" / "api").glob("*.md")):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if found := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
                module = found[1]
            elif found := re.fullmatch(r" {3}(\w+)", line):
                yield from with_members(module, found[1])


def with_members(module: str, name: str) -> Iterator[str]:
    """The full name of an object and, when it is a class, those of its public methods and properties."""
    yield f"{module}.{name}"
    thing = getattr(import_module(module), name)
    if inspect.isclass(thing):
        for member, value in inspect.getmembers(thing):
            home = getattr(value, "fget", value)
            if not member.startswith("_") and getattr(home, "__module__", "").startswith("calstat"):
                yield f"{module}.{name}.{member}"


def is_made_by_a_function(name: str, docstring: str) -> bool:
    """Whether a name is a class of results: it documents attributes, and nobody else calls its constructor."""
    is_class = name.rpartition(".")[2][0].isupper()
    return is_class and (name.endswith("Results") or ("Attributes\n" in docstring and "Parameters\n" not in docstring))


def main() -> int:
    with (ROOT / "pyproject.toml").open("rb") as stream:
        given = tomllib.load(stream)["tool"]["numpydoc_validation"]["checks"]
    checks = set(ERROR_MSGS) - set(given) if "all" in given else set(given)
    names = list(dict.fromkeys(listed_names()))
    faults = 0
    for name in names:
        found = validate(name)
        skipped = {"PR01"} if is_made_by_a_function(name, found["docstring"]) else set()
        for code, message in found["errors"]:
            if code in checks - skipped:
                faults += 1
                print(f"{name}: {code} {message}")
    print(f"{len(names)} docstrings, {faults} faults")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
