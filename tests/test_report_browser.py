"""The report in a browser: it is drawn, says nothing on the console and asks nobody for anything.

Needs Chromium from the distribution's package and is skipped where there is none.
"""

import http.server
import os
import re
import shutil
import struct
import subprocess
import threading
import zlib

import pytest

from tests.pages import BUDGET, FACTS, page, released

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        CHROMIUM is None or "CI" in os.environ, reason="needs Chromium from the distribution's package, outside of CI"
    ),
]


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
    notes=["always answering 'well' is right for about 0.98 of the rows: accuracy says little of the rarest class"],
)
PHONE = """<!doctype html><title>?</title><iframe style="width: 375px; height: 800px; border: 0"></iframe><script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument.documentElement;
  document.title = page.scrollWidth + " of " + page.clientWidth;
};
frame.src = location.search.slice(1) + ".html";
</script>"""


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
    (folder / "loud.html").write_text(f"<!doctype html><title>quiet</title>{loud}")
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

        def end_headers(self):
            if self.path.endswith("?sandbox"):
                self.send_header("Content-Security-Policy", "sandbox")
            super().end_headers()

        def log_message(self, *_):
            asked.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}", asked
        running.shutdown()


def browse(tmp_path, *arguments):
    """Run Chromium without a window; standard output and standard error, which has the console."""
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
            "--disable-dev-shm-usage", f"--user-data-dir={tmp_path / 'profile'}", *arguments,
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, re.findall(r"CONSOLE[^\n]*", done.stderr)


def pixels(path):
    """Width, height and the set of colours of a PNG with 8-bit samples."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    assert depth == 8
    return width, height, len(set(zlib.decompress(packed))), {2: 3, 6: 4}[colour]


def corner(path):
    """Red, green and blue of the first pixel of a PNG."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        packed += data[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    return tuple(zlib.decompress(packed)[1:4])  # whatever the filter, nothing is before it


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
    text, _ = browse(tmp_path, "--dump-dom", f"{where}/phone.html?{name}")
    found = re.search(r"<title>(\d+) of (\d+)</title>", text)
    assert found is not None
    assert (int(found[1]) <= int(found[2]) == 375) == fits


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
