"""Formulae between dollar signs become MathML when the site is built: nothing is fetched, and no script runs.

What the converter or browsers do not know is a warning, and so an error of the build.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

# a command that is not known stays as it is, and so does "&" outside of a table; MathML Core has no letters of
# another kind but upright ones
NOT_TYPESET = re.compile(r"\\\w*|<m\w+>&</m\w+>|mathvariant=\"(?!normal)[^\"]*\"")
# What the converter leaves to browsers and they set too widely: a function's name before what is no bracket; operators
# that are words; a slash; a minus that begins a formula or follows a bracket, a comma or a relation; infinity.
REFINED = (
    (re.compile(r"<mi>(\w\w+)</mi>(?!(?:<mrow>)?<mo[^>]*>(?:&#x00028;|\())"), r'<mi>\1</mi><mspace width="0.167em" />'),
    (re.compile(r'<mo(?: movablelimits="true")?>(\w\w+)</mo>'), r'<mo lspace="0.167em" rspace="0.1em">\1</mo>'),
    (re.compile(r"<mo>(?:&#x0002F;|/)</mo>"), '<mo lspace="0.05em" rspace="0.05em">/</mo>'),
    (
        re.compile(
            r"(<mrow>|<mo[^>]*>(?:&#x00028;|\[|&#x0005B;|&#x0002C;|&#x0003D;|&#x02264;|&#x02265;)</mo>)<mo>&#x02212;"
        ),
        r'\1<mo form="prefix">&#x02212;',
    ),
    (re.compile(r"<mo>&#x0221E;</mo>"), "<mi>&#x0221E;</mi>"),
)


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
    translator.body.append(formula if in_line else f'<div class="formula">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.add_html_math_renderer("mathml", (visit, None), (visit, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
