"""The command line: `dpselect ...`."""

__all__ = ["main"]


def main() -> None:
    """Run the command line. Importing it takes a second or two, in which Ctrl-C is an exit like any other."""
    try:
        from dpselect.cli.app import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()
