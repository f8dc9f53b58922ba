from .table import (
    SOURCES as SOURCES,
    Form as Form,
    Origin as Origin,
    Table as Table,
    open_table as open_table,
    source_name as source_name,
    without_password as without_password,
)
