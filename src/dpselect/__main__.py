"""`python -m dpselect` is the command `dpselect`."""

from dpselect.cli import main

if __name__ == "__main__":
    main()
