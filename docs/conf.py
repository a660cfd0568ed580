"""Sphinx settings. Build from the repository root: ``sphinx-build -W -c docs . docs/_build/html``."""

from __future__ import annotations

import os
from importlib.metadata import version as installed_version
from pathlib import Path

project = "calstat"
author = "The calstat developers"
copyright = "The calstat developers"
version = release = installed_version("calstat")

root_doc = "docs/index"
include_patterns = ["docs/**", "vignettes/*.py"]
exclude_patterns = ["docs/_build/**", "docs/scripts/**", "docs/_templates/**", "docs/_tables/**", "docs/conf.py"]
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_nb",
]
# `.rst` comes first: Sphinx takes the first suffix for the pages that autosummary writes.
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".py": "myst-nb"}

autosummary_generate = True
templates_path = [str(Path(__file__).parent / "_templates")]  # autosummary looks from the source root
autodoc_typehints = "none"  # numpydoc's "Parameters" sections say it
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

nitpicky = True
# Only references to our own objects must resolve: without a network there is no index of the others.
nitpick_ignore_regex = [(r"py:.*", r"(?!calstat\.).*")]

# The indexes of other projects are fetched only on request, so that a build needs no network.
if os.environ.get("CALSTAT_DOCS_INTERSPHINX"):
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "statsmodels": ("https://www.statsmodels.org/stable", None),
        "matplotlib": ("https://matplotlib.org/stable", None),
    }

html_theme = "pydata_sphinx_theme"
html_title = "calstat"
html_static_path = ["_static"]
html_css_files = ["calstat.css"]
html_sidebars = {"docs/*": [], "vignettes/*": []}  # a list of pages only beside the reference and the guides
html_extra_path = ["_extra"]  # index.html at the top leads to the start page
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "navigation_with_keys": False,
}
