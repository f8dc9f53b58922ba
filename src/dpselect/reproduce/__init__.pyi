from .papers import PAPERS as PAPERS, paper_named as paper_named
from .table import Context as Context, Paper as Paper, Part as Part, Reproduction as Reproduction
from .written import describe as describe, tables as tables, write as write
