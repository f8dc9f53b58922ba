from .declared import (
    KINDS as KINDS,
    ColumnKind as ColumnKind,
    Declared as Declared,
    DeclaredKeys as DeclaredKeys,
    Scalar as Scalar,
    TickReader as TickReader,
    other_dates as other_dates,
)
from .each_cell import column_of as column_of
