"""Tables after public reports of wrong reading, in our own words; `thread` names the report.

A module holds the cases of one subject. `tests/tables/test_cases.py` puts each through every door that takes it.
"""

from __future__ import annotations

from tests.tables.table_cases.broken_files import CASES as BROKEN_FILES
from tests.tables.table_cases.case import Case
from tests.tables.table_cases.csv_text import CASES as CSV_TEXT
from tests.tables.table_cases.databases import CASES as DATABASES
from tests.tables.table_cases.frames import CASES as FRAMES
from tests.tables.table_cases.moments import CASES as MOMENTS
from tests.tables.table_cases.named import CASES as NAMED
from tests.tables.table_cases.numbers_in_text import CASES as NUMBERS
from tests.tables.table_cases.other_files import CASES as OTHER_FILES
from tests.tables.table_cases.parquet import CASES as PARQUET
from tests.tables.table_cases.rare_columns import CASES as RARE_COLUMNS
from tests.tables.table_cases.rare_types import CASES as RARE_TYPES
from tests.tables.table_cases.workbooks import CASES as WORKBOOKS

__all__ = ["CASES", "Case"]

CASES: tuple[Case, ...] = (
    *CSV_TEXT,
    *NUMBERS,
    *MOMENTS,
    *NAMED,
    *FRAMES,
    *PARQUET,
    *DATABASES,
    *OTHER_FILES,
    *BROKEN_FILES,
    *WORKBOOKS,
    *RARE_TYPES,
    *RARE_COLUMNS,
)
