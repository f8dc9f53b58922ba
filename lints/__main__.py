"""Print every finding as `file:line: rule: message`; exit status 1 if there is one."""

from __future__ import annotations

import argparse
import gc
import sys

from lints.rule import findings, rules
from lints.source import library


def main() -> int:
    """Run all rules, or those that are named."""
    known = {rule.name: rule for rule in rules()}
    parser = argparse.ArgumentParser(prog="python -m lints", description=__doc__)
    parser.add_argument("rules", nargs="*", choices=[[], *known], help="all of them if none is named")
    named = parser.parse_args().rules
    gc.disable()  # the trees of all files stay until the end, so a collection finds nothing and costs half of the time
    found = sorted(findings(list(library()), [known[name] for name in named or known]))
    for file, line, rule, message in found:
        print(f"{file}:{line}: {rule}: {message}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
