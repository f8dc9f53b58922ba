from .blocks import csv_blocks as csv_blocks
from .categories import category as category, positions as positions
from .csv_text import CsvForm as CsvForm, csv_header as csv_header, csv_rows as csv_rows
from .databases import why_not as why_not
from .header import absent as absent, place_of as place_of
from .memory import (
    Cells as Cells,
    arrow_cells as arrow_cells,
    cells_in as cells_in,
    column_parts as column_parts,
    filled as filled,
    is_untyped as is_untyped,
    text_chunks as text_chunks,
    unmasked as unmasked,
)
from .numbers import (
    TRUTH as TRUTH,
    double_of as double_of,
    number_in as number_in,
    numbers_in as numbers_in,
    otherwise_written as otherwise_written,
    restated as restated,
)
from .text_cells import (
    arrow_texts as arrow_texts,
    cells_of as cells_of,
    text_type as text_type,
)
from .written import (
    CSV_ENDS as CSV_ENDS,
    Written as Written,
    csv_form as csv_form,
    has_tabs as has_tabs,
    is_csv as is_csv,
)
