"""The papers' figures and tables, one module a paper. `python -m papers PAPER` reruns them."""
