"""The leaderboards in a browser, as wide as a phone: nothing is wider than the page, nothing is asked for elsewhere.

Needs Chromium from the distribution's package and is skipped where there is none.
"""

import re

import pytest

from tests.browsing import MEDIA, NEEDS_CHROMIUM, barriers, browse, needs_axe, pixels, served as site_of
from tests.holdout.server.serving import invited, make_gate, make_holdout, served

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A leaderboard of people with long names."""
    folder = tmp_path_factory.mktemp("served")
    guesses = make_holdout(folder / "pets.holdout", answers=50, questions=200)
    better = make_gate(folder / "a-gate-with-a-name-that-is-long-enough-to-be-broken-on-a-phone.gate")
    with served(folder, folder) as server:
        for number, name in enumerate(["Ada", "Grace Brewster Murray Hopper", "W" * 80]):
            token = invited(folder, name)
            assert server.submit("pets", {"predictions": guesses, "claim": 0.91 - number / 100}, token)[0] == 200
        gate = "a-gate-with-a-name-that-is-long-enough-to-be-broken-on-a-phone"
        assert server.submit(gate, {"outcomes": better}, token)[1] == {"verdict": "accepted"}
        yield server, gate


def overflow(page, width):
    """A page that holds another one, as wide as a phone, and says how wide that one's content is."""
    return (
        f'<!doctype html><body style="margin:0"><iframe id="f" width="{width}" height="900" style="border:0"></iframe>'
        f"<script>f.srcdoc={page!r}</script>"
        "<script>f.onload=()=>{document.title=f.contentDocument.documentElement.scrollWidth}</script>"
    )


@pytest.mark.parametrize("name", ["", "pets", "gate"])
def test_a_phone_shows_all_of_it(world, tmp_path, name):
    server, gate = world
    path = "/" if not name else f"/boards/{gate if name == 'gate' else name}"
    shot = tmp_path / "phone.png"
    # the browser's window has a least width of its own; the page in a frame is as narrow as a phone
    page = server.ask("GET", path)[2].decode()
    framed = tmp_path / "framed.html"
    framed.write_text(overflow(page.replace("\n", " "), 375))
    said, console = browse(tmp_path, "--window-size=375,900", f"--screenshot={shot}", "--dump-dom", framed.as_uri())
    assert console == []
    assert re.search(r"<title>(\d+)</title>", said)[1] == "375"
    width, _, different, _ = pixels(shot)
    assert width >= 375
    assert different > 20


def test_the_test_would_see_what_is_too_wide(world, tmp_path):
    framed = tmp_path / "framed.html"
    framed.write_text(overflow('<p style="width: 400px">wide</p>', 375))
    said, _ = browse(tmp_path, "--dump-dom", framed.as_uri())
    assert re.search(r"<title>(\d+)</title>", said)[1] != "375"


def test_the_page_is_drawn_by_the_server_alone(world, tmp_path):
    """With the headers that the server sends: the style is taken, nothing is refused."""
    server, _ = world
    shot = tmp_path / "shot.png"
    before = len(server.lines.read_text().splitlines())
    _, console = browse(tmp_path, "--window-size=500,900", f"--screenshot={shot}", f"{server.url}/boards/pets")
    assert console == []
    asked = server.lines.read_text().splitlines()[before:]
    assert {" ".join(line.split()[3:]) for line in asked} <= {"GET /boards/{board} 200", "GET - 404"}  # the icon
    assert pixels(shot)[0] == 500


@pytest.fixture(scope="module")
def copies(world, tmp_path_factory):
    """The pages as files, so that axe can be added to them."""
    server, gate = world
    folder = tmp_path_factory.mktemp("copies")
    for name, path in {"index": "/", "pets": "/boards/pets", "gate": f"/boards/{gate}"}.items():
        (folder / f"{name}.html").write_bytes(server.ask("GET", path)[2])
    with site_of(folder) as (where, _):
        yield where


@needs_axe
@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize("name", ["index", "pets", "gate"])
def test_axe_finds_no_barrier(copies, tmp_path, name, media):
    assert barriers(tmp_path, copies, name, media) == []
