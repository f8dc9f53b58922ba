"""Make report.png: run the quickstart as it stands, and photograph the head of its report.

    python docs/images/report.py

Needs the extra `plot` (for Pillow) and Chromium. The noise differs from run to run, and so do the numbers.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "tutorials/quickstart.md"
NAME = 'name = "members who leave"'
WIDTH, HEIGHT = 960, 1840
"""In pixels of CSS: down to the end of the section on protection."""
SCALE = 1.5
"""Pixels of the picture for one of CSS, for sharp text on dense screens."""
COLOURS = 64
"""Enough for text on a plain ground, and a file below 200 kB."""


def block(language: str) -> str:
    """The first block of code in the quickstart."""
    return re.search(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)[1]


def photograph(page: Path, shot: Path) -> None:
    """The head of a page, as a palette of few colours."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("install Chromium: apt-get install chromium")
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--force-device-scale-factor={SCALE}", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={shot}"]
    subprocess.run([*command, page.as_uri()], check=True, capture_output=True)
    with Image.open(shot) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(shot, optimize=True)


def main() -> None:
    """Train in a temporary folder, whose state is temporary too."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", block("python")], check=True, cwd=folder)
        (Path(folder) / "study.toml").write_text(f"{NAME}\n{block('toml')}", encoding="utf-8")
        tune = [sys.executable, "-m", "dpselect", "tune", "--quiet", "study.toml"]
        subprocess.run(tune, check=True, cwd=folder, env=os.environ | {"XDG_STATE_HOME": folder})
        photograph(Path(folder) / "release/report.html", HERE / "report.png")


if __name__ == "__main__":
    main()
