"""Pages in Chromium without a window: what they say on the console, how wide they are, how they look, what axe finds.

DPSELECT_TEST_AXE names the file axe.min.js of the package axe-core, which lists barriers for people with disabilities.
"""

import html
import http.server
import json
import os
import re
import shutil
import struct
import subprocess
import threading
import zlib
from contextlib import contextmanager
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NEEDS_CHROMIUM = [
    pytest.mark.full,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium from the distribution's package"),
]
PHONE = """<!doctype html><title>?</title><body style="margin: 0">
<iframe style="width: 375px; height: 800px; border: 0"></iframe><script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument.documentElement;
  document.title = page.scrollWidth + " of " + page.clientWidth;
};
frame.src = location.search.slice(1) + ".html";
</script>"""
"""As narrow as no window without a screen is: /phone.html?NAME shows NAME.html."""

AXE = os.environ.get("DPSELECT_TEST_AXE")
needs_axe = pytest.mark.skipif(not AXE, reason="needs DPSELECT_TEST_AXE, the file axe.min.js")
MEDIA = ("light", "dark", "phone", "print")
AUDIT = """<script src="/axe.min.js"></script><script>
addEventListener("load", async () => {
  const media = location.search.slice("?axe=".length);
  if (media === "print") for (const sheet of document.styleSheets) for (const each of [sheet, ...sheet.cssRules]) {
    const list = each.media && each.media.mediaText;
    if (list && /print/.test(list)) each.media.mediaText = "all";
    else if (list && /screen/.test(list)) each.media.mediaText = "not all";
  }
  const found = await axe.run(document, {resultTypes: ["violations"]});
  const lines = found.violations.flatMap(({id, nodes}) => nodes.map((node) => `${id}: ${node.target} ${node.html}`));
  const shown = parent.document.body.appendChild(parent.document.createElement("pre"));
  shown.id = "axe-found";
  shown.textContent = JSON.stringify(lines);
});
</script>"""
"""Runs axe on the page that it stands in, on paper as the print styles have it, and writes what it found."""
FRAME = """<!doctype html><title>frame</title><body style="margin: 0">
<iframe style="width: 375px; height: 800px; border: 0"></iframe><script>
document.querySelector("iframe").src = location.search.slice(1);
</script>"""


def browse(tmp_path, *arguments):
    """Run Chromium without a window; standard output and standard error, which has the console."""
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
            "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run",
            f"--user-data-dir={tmp_path / 'profile'}", *arguments,
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, re.findall(r"CONSOLE[^\n]*", done.stderr)


@contextmanager
def served(folder):
    """The files of a folder over HTTP on this machine: the URL, and the paths that were asked for."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

        def do_GET(self):
            path, _, query = self.path.partition("?")
            if path == "/axe.min.js":
                self.reply(Path(AXE).read_bytes(), "text/javascript")
            elif path == "/axe-frame.html":
                self.reply(FRAME.encode(), "text/html")
            elif query.startswith("axe="):
                text = Path(self.translate_path(path)).read_text(encoding="utf-8")
                text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
                self.reply(text.replace("</body>", f"{AUDIT}</body>").encode(), "text/html; charset=utf-8")
            else:
                super().do_GET()

        def reply(self, body, kind):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

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


def fits_a_phone(tmp_path, where, name):
    """Whether a page of a served folder that has `PHONE` as phone.html is no wider than 375 pixels."""
    text, _ = browse(tmp_path, "--dump-dom", f"{where}/phone.html?{name}")
    found = re.search(r"<title>(\d+) of (\d+)</title>", text)
    assert found is not None
    assert int(found[2]) == 375
    return int(found[1]) <= 375


def barriers(tmp_path, where, name, media):
    """What axe finds on a page of a served folder, one line for each element; `media` is one of `MEDIA`."""
    page = f"/{name}.html?axe={media}"
    address = f"{where}/axe-frame.html?{page}" if media == "phone" else f"{where}{page}"
    scheme = f"--blink-settings=preferredColorScheme={0 if media == 'dark' else 1}"
    text, _ = browse(tmp_path, scheme, "--window-size=1280,1600", "--virtual-time-budget=60000", "--dump-dom", address)
    found = re.search(r'<pre id="axe-found">(.*?)</pre>', text, flags=re.S)
    assert found is not None, text[-2000:]
    return json.loads(html.unescape(found[1]))


def pixels(path):
    """Width, height, the number of different bytes and the samples a pixel of a PNG with 8-bit samples."""
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
    return tuple(zlib.decompress(packed)[1:4])  # regardless of the filter, nothing is before it
