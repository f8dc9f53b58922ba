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

from tests.pages import page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or "CI" in os.environ, reason="needs Chromium from the distribution's package, outside of CI"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The page over HTTP on this machine, and the paths that were asked for."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "report.html").write_text(page())
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


def test_it_prints_on_a_few_pages(server, tmp_path):
    where, _ = server
    paper = tmp_path / "report.pdf"
    browse(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={paper}", f"{where}/report.html")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", paper.read_bytes())) <= 6
