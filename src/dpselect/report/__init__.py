"""What a person looks at: plots and one self-contained HTML page, made from public facts and the release only."""

from dpselect.report.facts import search_facts
from dpselect.report.page import render_page

__all__ = ["render_page", "search_facts"]
