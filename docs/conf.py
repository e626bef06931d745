"""Sphinx settings of the manual; built by ``make docs``, without a network."""

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib

import nearfield

matplotlib.use("Agg")
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "nearfield"
author = "The nearfield developers"
copyright = author
version = release = nearfield.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx-mathjax-offline",  # MathJax from a package, so that pages need no network
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "command_reference",
]
exclude_patterns = ["_build", "tutorials/**/README*"]
templates_path = ["_templates"]

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Reference
toc_object_entries_show_parents = "hide"
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings state types and shapes
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# Figures of the explanation pages: one script each in plots/
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 144)]
plot_basedir = str(Path(__file__).parent / "plots")
plot_rcparams = {
    "figure.dpi": 100,
    "savefig.bbox": "tight",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
}
plot_apply_rcparams = True

# Tutorials: every script in examples/ is run
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["tutorials"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1_000_000,  # times of the machine that built the page say little
    "write_computation_times": False,
    "image_scrapers": ("matplotlib",),
    "remove_config_comments": True,
    "reference_url": {"nearfield": None},
    "doc_module": ("nearfield",),
    "backreferences_dir": "reference/generated/used_in",
    "inspect_global_variables": False,
    "capture_repr": (),  # what is to be shown is printed or drawn
}

html_theme = "pydata_sphinx_theme"
html_title = f"nearfield {version}"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_js_files = ["wide_figures.js"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {  # the tables of the benchmarks take the whole width
        "**": ["page-toc"],
        "benchmark": [],
        "benchmark_large": [],
        "benchmark_spectra": [],
        "benchmark_tables": [],
    },
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"getting_started": [], "comparison": [], "faq": [], "glossary": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def skip_foreign_member(app, what, name, obj, skip, options) -> bool | None:
    """Leave out what is inherited from scikit-learn, and what every named tuple has."""
    function: Any = inspect.unwrap(getattr(obj, "fget", None) or obj)
    is_of_tuple = obj in (tuple.count, tuple.index) or type(obj).__name__ == "_tuplegetter"
    is_foreign = str(getattr(function, "__module__", "")).startswith("sklearn")
    return True if is_foreign or is_of_tuple else None


def escape_trailing_underscores(app, what, name, obj, options, lines) -> None:
    """Keep ``shape (n_features_in_,)`` from being read as a link."""
    lines[:] = [re.sub(r"(\w)_([,)])", r"\1\\_\2", x) if "shape (" in x else x for x in lines]


def setup(app) -> None:
    """Connect the functions above."""
    app.connect("autodoc-skip-member", skip_foreign_member)
    app.connect("autodoc-process-docstring", escape_trailing_underscores, priority=400)
