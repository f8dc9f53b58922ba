"""The built documentation in a browser: as wide as a phone, dark, silent, asking no one, with a search that finds.

    sphinx-build docs site
    DPSELECT_TEST_SITE=site pytest -m full tests/docs/test_site_browser.py --basetemp=shots

leaves the screenshots in the folder `shots`. Needs Chromium from the distribution's package.
"""

import os
import re
from pathlib import Path

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

SITE = os.environ.get("DPSELECT_TEST_SITE")
pytestmark = [*NEEDS_CHROMIUM, pytest.mark.skipif(not SITE, reason="needs DPSELECT_TEST_SITE, a built documentation")]
PAGES = (
    "index", "tutorials/tutorial", "how-to/gallery", "reference/study-file", "reference/glossary", "reference/theorems",
    "evidence/better-models", "api/tuning", "theory/optimal-selection", "theory/sparse-vector",
)  # fmt: skip

AUDITED = (
    "index", "tutorials/quickstart", "how-to/pictures", "how-to/gallery", "reference/study-file",
    "evidence/better-models", "api/tuning",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site over HTTP, a page that shows one of its pages as on a phone, and the paths that were asked for."""
    folder = tmp_path_factory.mktemp("site")
    for each in Path(SITE).resolve().iterdir():
        (folder / each.name).symlink_to(each)
    (folder / "phone.html").write_text(PHONE)
    with served(folder) as running:
        yield running


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_drawn_in_silence_and_fits_a_phone(site, tmp_path, name):
    where, asked = site
    asked.clear()
    shot = tmp_path / "screen.png"
    _, console = browse(tmp_path, "--window-size=1280,1600", f"--screenshot={shot}", f"{where}/{name}.html")
    assert console == []
    assert pixels(shot)[2] > 20
    assert all(path.startswith("/") for path in asked)
    assert fits_a_phone(tmp_path, where, name)
    browse(tmp_path, "--window-size=375,800", f"--screenshot={tmp_path / 'phone.png'}", f"{where}/phone.html?{name}")


@needs_axe
@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize("name", AUDITED)
def test_axe_finds_no_barrier(site, tmp_path, name, media):
    where, _ = site
    assert barriers(tmp_path, where, name, media) == []


def test_a_dark_screen_gets_a_dark_site(site, tmp_path):
    where, _ = site
    shades = []
    for scheme in (1, 0):
        shot = tmp_path / f"{scheme}.png"
        scheme_of_screen = f"--blink-settings=preferredColorScheme={scheme}"
        browse(tmp_path, scheme_of_screen, f"--screenshot={shot}", f"{where}/index.html")
        shades.append(corner(shot))
    assert min(shades[0]) > 200
    assert max(shades[1]) < 60


def test_the_search_finds_a_page(site, tmp_path):
    where, _ = site
    found, _ = browse(tmp_path, "--virtual-time-budget=20000", "--dump-dom", f"{where}/search.html?q=sparse+vector")
    assert 'href="how-to/sparse-vector.html' in found


def test_programs_find_the_source_of_each_page_and_all_names_in_one_file():
    folder = Path(SITE)
    links = re.findall(r"\]\((.*?)\)", (folder / "llms.txt").read_text(encoding="utf-8"))
    assert len(links) > 100
    assert [link for link in links if not (folder / link).exists()] == []
    whole = (folder / "llms-full.txt").read_text(encoding="utf-8")
    assert len(whole) < 250_000
    assert all(name in whole for name in ("dpselect tune study.toml", "`best_of(", "`PrivateSearchCV(", "`Ledger("))
