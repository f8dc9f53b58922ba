from .table import (
    PAPERS as PAPERS,
    Context as Context,
    Paper as Paper,
    Part as Part,
    Reproduction as Reproduction,
    paper_named as paper_named,
)
from .written import describe as describe, tables as tables, write as write
