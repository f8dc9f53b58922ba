"""Formulae between dollar signs become MathML when the site is built: nothing is fetched, and no script runs.

What the converter or browsers do not know is a warning, and so an error of the build.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

# a command that is not known stays as it is, and so does "&" outside of a table; MathML Core has no letters of
# another kind but upright ones
NOT_TYPESET = re.compile(r"\\\w*|<m\w+>&</m\w+>|mathvariant=\"(?!normal)[^\"]*\"")
# What the converter leaves to browsers and they set too widely or too narrowly: a name of a function before what is no
# bracket, or after a factor; operators that are words; a slash; a minus that begins a formula or follows a bracket, a
# comma or a relation; infinity; bars.
REFINED = (
    (re.compile(r"<mi>(\w\w+)</mi>(?!(?:<mrow>)?<mo[^>]*>(?:&#x00028;|\())"), r'<mi>\1</mi><mspace width="0.167em" />'),
    (re.compile(r"(</m[in]>)(<mi>\w\w+</mi>)"), r'\1<mspace width="0.167em" />\2'),
    (re.compile(r'<mo(?: movablelimits="true")?>(\w\w+)</mo>'), r'<mo lspace="0.167em" rspace="0.1em">\1</mo>'),
    (re.compile(r"<mo>(?:&#x0002F;|/)</mo>"), '<mo lspace="0.05em" rspace="0.05em">/</mo>'),
    (
        re.compile(
            r"(<mrow>|<mo[^>]*>(?:&#x00028;|\[|&#x0005B;|&#x0002C;|&#x0003D;|&#x02264;|&#x02265;)</mo>)<mo>&#x02212;"
        ),
        r'\1<mo form="prefix">&#x02212;',
    ),
    (re.compile(r"<mo>&#x0221E;</mo>"), "<mi>&#x0221E;</mi>"),
    (re.compile(r'<mo stretchy="false">&#x0007C;</mo>'), '<mo stretchy="false" lspace="0" rspace="0">&#x0007C;</mo>'),
)
AFTER = re.compile(r"[-.,;:!?)\u2019\]]+")
"""What must not begin a line."""
LONG = 28
"""A formula in a line with more letters may be wider than a phone, and scrolls there."""


def mathml(latex: str, display: str) -> str:
    """One formula; `display` is "inline" or "block"."""
    # the converter knows `aligned` by the name that it has outside of other formulae
    formula = convert(re.sub(r"\b(begin|end){aligned}", r"\1{align*}", latex), display=display)
    for pattern, better in REFINED:
        formula = pattern.sub(better, formula)
    return formula


def not_typeset(formula: str) -> Iterator[str]:
    """What has stayed as it was written."""
    return (found[0] for found in NOT_TYPESET.finditer(formula))


def visit(translator: HTML5Translator, node: nodes.Element) -> None:
    """Write one formula, in a line or by itself."""
    in_line = isinstance(node, nodes.math)
    try:
        formula = mathml(node.astext(), "inline" if in_line else "block")
        wrong = ", ".join(not_typeset(formula))
    except Exception as error:
        formula, wrong = "", repr(error)
    if wrong:
        logging.getLogger(__name__).warning("not typeset: %s in %s", wrong, node.astext(), location=node)
    after, letters = node.get("after", ""), len(unescape(re.sub(r"<[^>]*>", "", formula)))
    if in_line and (after or letters > LONG):
        formula = f'<span class="{"long" if letters > LONG else "together"}">{formula}{after}</span>'
    translator.body.append(formula if in_line else f'<div class="formula">{formula}</div>\n')
    raise nodes.SkipNode


def keep_together(_app: Sphinx, doctree: nodes.document, _page: str) -> None:
    """A browser may break a line between a formula and the comma after it: give the comma to the formula."""
    for formula in list(doctree.findall(nodes.math)):
        place = formula.parent.index(formula) + 1
        following = formula.parent[place] if place < len(formula.parent) else None
        if isinstance(following, nodes.Text) and (found := AFTER.match(following)):
            formula["after"] = found[0]
            formula.parent[place] = nodes.Text(following[found.end() :])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.add_html_math_renderer("mathml", (visit, None), (visit, None))
    app.connect("doctree-resolved", keep_together)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
