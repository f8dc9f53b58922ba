from .blocks import csv_blocks as csv_blocks
from .categories import category as category, positions as positions
from .csv_text import CsvForm as CsvForm, csv_header as csv_header, csv_rows as csv_rows
from .databases import why_not as why_not
from .fates import (
    FATES as FATES,
    INSIDE as INSIDE,
    MISSING as MISSING,
    NO_FATES as NO_FATES,
    NO_VALUE as NO_VALUE,
    UNREADABLE as UNREADABLE,
    block_fates as block_fates,
    is_missing_text as is_missing_text,
    lost_fates as lost_fates,
    number_fates as number_fates,
    tally as tally,
    text_fates as text_fates,
)
from .header import absent as absent, place_of as place_of
from .numbers import (
    TRUTH as TRUTH,
    number_in as number_in,
    numbers_in as numbers_in,
    otherwise_written as otherwise_written,
    restated as restated,
)
from .text_cells import (
    arrow_cells as arrow_cells,
    arrow_texts as arrow_texts,
    cells_of as cells_of,
    text_chunks as text_chunks,
    text_type as text_type,
)
from .written import (
    CSV_ENDS as CSV_ENDS,
    Written as Written,
    csv_form as csv_form,
    has_tabs as has_tabs,
    is_csv as is_csv,
)
