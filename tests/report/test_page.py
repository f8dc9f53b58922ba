"""The report: what it says, that it holds nothing else, that a person and a screen reader can use it."""

import re
from decimal import Decimal
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from dpselect.errors import StudyError
from dpselect.numerics.digits import rounded, rounded_down, rounded_up
from dpselect.privacy import gaussian, pure_dp
from dpselect.repetitions import Harmonic
from dpselect.report.facts import search_facts
from dpselect.report.page import render_page
from dpselect.study.write import remake_report
from tests.report.pages import BUDGET, FACTS, LAW, RELEASE, page, toy_release


class Outline(HTMLParser):
    """Tags in order, with attributes, and the text inside each."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.unbalanced = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.mark.full
def test_where_nothing_is_guaranteed_the_page_says_so():
    """Compositions of a Gaussian have no finite epsilon at delta 0; what stands for infinity is not a number."""
    base = gaussian(noise_multiplier=4.0)
    facts = search_facts(parts=(base,), search=pure_dp(epsilon=1.0), law=Harmonic(limit=2), delta=0.0)
    assert [cost["epsilon"] for cost in facts["costs"] if cost["kind"] == "composition"] == [None, None]
    assert page(facts=facts).count("nothing is guaranteed at this delta") >= 2


@pytest.mark.full
def test_the_page_says_what_was_chosen_and_what_it_cost():
    text = page()
    for cost in FACTS["costs"]:
        assert cost["label"].replace("'", "&#39;") in text or cost["label"] in text
        assert f">{rounded_up(cost['epsilon'], digits=4)}<" in text
    assert "learning_rate" in text
    assert "0.1235" in text  # four digits of 0.123456789
    assert "0.12345" not in text
    assert f"never more than {LAW.limit}" in text


@pytest.mark.full
def test_the_deltas_under_the_pointer_are_not_below_the_curves():
    tips = re.findall(r"epsilon ([\d.e-]+): one run ([\d.e-]+), whole search ([\d.e-]+)<", page())
    curve = FACTS["curve"]
    assert len(tips) == len(curve["epsilon"])
    for (_, one, search), exact_one, exact_search in zip(tips, curve["one_run"], curve["search"], strict=True):
        assert float(one) >= exact_one
        assert float(search) >= exact_search


@pytest.mark.full
def test_the_budget_stands_before_and_after():
    assert "budget" not in Outline(page()).named("section")[-1]["aria-labelledby"]
    text = page(facts={**FACTS, "budget": BUDGET})
    assert "The budget, before and after" in text
    for amount in ("0.25", "1.25", "1e-06"):
        assert f">{amount}<" in text


@pytest.mark.full
def test_the_page_can_be_read_aloud():
    """Landmarks, one first heading, no level left out, a label on every picture and a head on every column."""
    outline = Outline(page(facts={**FACTS, "budget": BUDGET}))
    assert outline.unbalanced == []
    assert outline.named("html") == [{"lang": "en"}]
    for landmark in ("header", "main", "footer"):
        assert len(outline.named(landmark)) == 1
    levels = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    identifiers = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(set(identifiers)) == len(identifiers)
    for section in outline.named("section"):
        assert section["aria-labelledby"] in identifiers
    pictures = outline.named("svg")
    assert len(pictures) == 5
    for drawn in pictures:
        assert drawn["role"] == "img"
        assert len(drawn["aria-label"]) > 40
    # every plot has its numbers in a table, and a cell's row and column can be told
    assert len(outline.named("table")) >= 6
    assert all("scope" in head for head in outline.named("th"))


@pytest.mark.full
def test_the_page_needs_no_script_and_no_network():
    text = page()
    assert "<script" not in text
    assert "javascript:" not in text
    assert not re.search(r"\b(src|action|data|poster|onload|onerror)=|\bhref=(?!\"#)", text)
    assert not re.search(r"url\((?!#)|@import|@font-face", text)
    assert "default-src 'none'" in text


@pytest.mark.full
def test_names_from_a_study_cannot_break_out():
    hostile = "</title><script>alert(1)</script>\"'&"
    release = {**RELEASE, "study": hostile, "parameters": {hostile: hostile}}
    budget = {**BUDGET, "name": hostile}
    costs = [{**cost, "label": hostile} for cost in FACTS["costs"]]
    text = page(release=release, facts={**FACTS, "budget": budget, "costs": costs})
    assert "<script" not in text
    assert Outline(text).unbalanced == []


def contrast(first, second):
    """The contrast ratio of two colours (WCAG 2.2)."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_stand_out(scheme):
    """WCAG 2.2 AA: 4.5 for text, 3 for what a plot draws."""
    blocks = re.findall(r":root \{([^}]*)\}", page())
    colours = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", blocks[0] if scheme == "light" else blocks[1]))
    for surface in ("page", "card"):
        for name in ("text", "soft", "search", "run"):
            assert contrast(colours[name], colours[surface]) >= 4.5, (name, surface)
    for name in ("other", "composition", "column"):
        assert contrast(colours[name], colours["card"]) >= 3.0, name
    assert contrast(colours["text"], colours["warn"]) >= 4.5


@pytest.mark.full
def test_a_release_of_nothing_and_a_replayable_one_say_so():
    text = page(release={**RELEASE, "found": False, "parameters": None, "model": None, "replayable": True})
    assert "Nothing was found" in text
    assert "It promises nothing to anyone who knows that key" in text


@pytest.mark.full
def test_the_page_is_made_again_from_its_folder(tmp_path):
    folder = toy_release(tmp_path)
    before = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    (folder / "model.npz").unlink()
    assert remake_report(folder) == folder / "report.html"
    assert (folder / "report.html").read_bytes() == before
    assert remake_report(folder, tmp_path / "elsewhere.html").read_bytes() == before


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("facts.json", None, "holds no facts.json"),
        ("release.json", "{", "is not JSON"),
        ("release.json", "[]", "is not the release.json"),
        ("release.json", "{}", "are not a release"),
        ("facts.json", '{"format": 1}', "are not a release"),
    ],
)
def test_a_folder_without_a_release_is_refused(tmp_path, name, content, said):
    folder = toy_release(tmp_path)
    (folder / "report.html").unlink()
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    with pytest.raises(StudyError, match=said):
        remake_report(folder)
    assert not (folder / "report.html").exists()


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_bounds_are_rounded_to_their_own_side(value):
    """Four digits, upwards for what is guaranteed, downwards for what nothing valid is below."""
    exact = Decimal(repr(value))
    below, above, nearest = (Decimal(f(value, digits=4)) for f in (rounded_down, rounded_up, rounded))
    assert below <= exact <= above
    assert above - exact <= exact / 1000
    assert exact - below <= exact / 1000
    assert abs(nearest - exact) <= exact / 2000 * (1 + Decimal("1e-9"))


@pytest.mark.full
def test_plots_stay_finite_at_the_ends():
    """Zero and one value only: nothing divides by a range of nothing, nothing is not a number."""
    costs = [{"label": "nothing", "kind": "run", "epsilon": 0.0}]
    law = {**FACTS["law"], "probabilities": [1.0]}
    curve = {"epsilon": [0.0], "one_run": [0.0], "search": [0.0], "log": True}
    text = page(facts={**FACTS, "epsilon": 0.0, "costs": costs, "law": law, "curve": curve})
    assert not re.search(r'[ "](nan|inf)\b', text)
    assert render_page(RELEASE, FACTS) == render_page(RELEASE, FACTS)
