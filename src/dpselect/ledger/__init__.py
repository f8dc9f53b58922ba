"""The budget record: reserve, settle, verify."""
