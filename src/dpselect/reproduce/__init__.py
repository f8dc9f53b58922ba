"""The papers' figures and tables, one module a paper, each rerun by `dpselect reproduce PAPER`."""
