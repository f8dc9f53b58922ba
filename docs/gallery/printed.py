"""What an example printed, as the test of that example has compared it: pictures show these numbers again."""

import re
from pathlib import Path

NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?![\w.]*\w)")


def numbers(name: str, line: str = "") -> list[float]:
    """The numbers of all lines that hold some words, in order."""
    text = (Path(__file__).parent / f"{name}.txt").read_text(encoding="utf-8")
    shown = "\n".join(each for each in text.splitlines() if line in each)
    return [float(each.replace(",", "")) for each in NUMBER.findall(shown)]
