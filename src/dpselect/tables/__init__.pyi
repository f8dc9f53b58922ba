from .kinds.declared import KINDS as KINDS, ColumnKind as ColumnKind, Declared as Declared
from .table import SOURCES as SOURCES, Table as Table
from .written import Written as Written
