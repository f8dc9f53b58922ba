"""The documentation site. Build it, warnings being errors: sphinx-build -W -n docs build/docs

Pages are plain Markdown that reads well without Sphinx too; what they need beyond that is in `extensions/`.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import dpselect

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "dpselect"
author = copyright = "The dpselect developers"
version = release = dpselect.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinxcontrib.bibtex",
    "citations",
    "docstrings",
    "formulae",
    "gallery",
    "last_run",
    "llms",
    "notebooks",
    "outside_links",
    "plots",
    "statements",
    "theorems",
]
exclude_patterns = ["extensions", "gallery", "static", "templates"]
html_theme = "furo"
html_title = f"dpselect {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_theme_options = {"top_of_page_buttons": []}
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_math_renderer = "mathml"

# what is copied is what one types: without prompts, and without what is printed
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "unsrt"
bibtex_cite_id = "cite-{key}"

autodoc_default_options = {"members": True, "imported-members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
# integrations are documented without the libraries that they are for
autodoc_mock_imports = [
    name
    for name in ("opacus", "torch", "optuna", "jax", "jax_privacy", "dask", "distributed", "ray", "diffprivlib")
    if importlib.util.find_spec(name) is None
]
# types of other libraries have no page here
nitpick_ignore_regex = [("py:.*", r"(?!dpselect\.).*")]
