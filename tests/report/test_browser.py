"""The report in a browser: it is drawn, says nothing on the console and asks no one for anything.

Needs Chromium from the distribution's package and is skipped where there is none.
"""

import re

import pytest

from tests.browsing import (
    MEDIA,
    NEEDS_CHROMIUM,
    PHONE,
    barriers,
    browse,
    corner,
    fits_a_phone,
    needs_axe,
    pixels,
    served,
)
from tests.report.pages import BUDGET, FACTS, page, released

pytestmark = NEEDS_CHROMIUM

FULL = released(
    card={"purpose": "Whom to call again after a week. " * 4, "not_for": "Treatment. " * 8, "license": "cc-by-4.0"},
    data={
        "form": {"delimiter": ";", "encoding": "latin-1", "decimal": ","},
        "columns": {
            f"a column with a name {'of many letters' * (i % 3)} {i}": {
                "bounds": [0.0, 1.0 + i],
                "missing": "indicator",
            }
            for i in range(100)
        },
    },
    preparation={"bounds": {}, "epsilon": 0.1},
    notes=["always predicting 'well' is right for about 0.98 of the rows: accuracy says little of the rarest class"],
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The page over HTTP on this machine, and the paths that were asked for."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "report.html").write_text(page())
    (folder / "full.html").write_text(page(release=FULL, facts=FACTS | {"budget": BUDGET}))
    (folder / "broad.html").write_text("<!doctype html><p style='width: 400px'>broad")
    (folder / "phone.html").write_text(PHONE)
    loud = (
        '<script>console.error("LOUD"); document.title = "ran"; document.write("written")</script><img src="/more.png">'
    )
    (folder / "pale.html").write_text("<!doctype html><p style='color: #bbb'>pale</body>")
    (folder / "loud.html").write_text(f"<!doctype html><title>quiet</title>{loud}")
    with served(folder) as running:
        yield running


def test_the_page_is_drawn_in_silence(server, tmp_path):
    where, asked = server
    asked.clear()
    shot = tmp_path / "shot.png"
    _, console = browse(tmp_path, "--window-size=900,3200", f"--screenshot={shot}", f"{where}/report.html")
    assert console == []
    # a browser asks for the icon of a site by itself
    assert set(asked) - {"/favicon.ico"} == {"/report.html"}
    width, height, different, _ = pixels(shot)
    assert (width, height) == (900, 3200)
    assert different > 20


def test_the_test_would_hear_a_script_and_see_a_request(server, tmp_path):
    """The same browser on a page that does what ours must not."""
    where, asked = server
    asked.clear()
    text, console = browse(tmp_path, "--dump-dom", f"{where}/loud.html")
    assert "LOUD" in "".join(console)
    assert "/more.png" in asked
    assert "<title>ran</title>" in text


def test_the_page_looks_the_same_without_scripting(server, tmp_path):
    """To the pixel, where the server forbids scripts; a page that a script writes does not."""
    where, _ = server
    seen = {}
    for name in ("report", "loud"):
        for scripting in ("", "?sandbox"):
            shot = tmp_path / f"{name}{len(scripting)}.png"
            browse(tmp_path, f"--screenshot={shot}", f"{where}/{name}.html{scripting}")
            seen[name, scripting] = shot.read_bytes()
    assert seen["report", ""] == seen["report", "?sandbox"]
    assert seen["loud", ""] != seen["loud", "?sandbox"]


def test_it_prints_on_two_pages(server, tmp_path):
    """With a budget, test rows, a warning and a table of columns that is too long for paper."""
    where, _ = server
    paper = tmp_path / "report.pdf"
    browse(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={paper}", f"{where}/full.html")
    assert len(re.findall(rb"/Type\s*/Page\b", paper.read_bytes())) == 2


@pytest.mark.parametrize(("name", "fits"), [("report", True), ("full", True), ("broad", False)])
def test_a_phone_needs_no_scrolling_sideways(server, tmp_path, name, fits):
    """In a frame of 375 pixels, as narrow as no window without a screen is; the test sees a page that is too broad."""
    where, _ = server
    assert fits_a_phone(tmp_path, where, name) == fits


def test_a_dark_screen_gets_a_dark_page(server, tmp_path):
    where, _ = server
    shades = []
    for scheme in (1, 0):
        shot = tmp_path / f"{scheme}.png"
        browse(
            tmp_path, f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={shot}", f"{where}/report.html"
        )
        shades.append(corner(shot))
    assert min(shades[0]) > 200
    assert max(shades[1]) < 60


@needs_axe
@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize("name", ["report", "full"])
def test_axe_finds_no_barrier(server, tmp_path, name, media):
    where, _ = server
    assert barriers(tmp_path, where, name, media) == []


@needs_axe
@pytest.mark.parametrize("media", ["light", "phone"])
def test_axe_would_find_one(server, tmp_path, media):
    where, _ = server
    assert any(line.startswith("color-contrast") for line in barriers(tmp_path, where, "pale", media))
