from .table import SOURCES as SOURCES, Table as Table, open_table as open_table
