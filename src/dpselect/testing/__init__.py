"""Exact laws on finite outputs, and contracts that you hold your own mechanism, ledger, gate or executor to."""
