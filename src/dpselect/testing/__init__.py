"""Shipped checks: exact laws on finite outputs, and contracts that mechanisms must keep."""
