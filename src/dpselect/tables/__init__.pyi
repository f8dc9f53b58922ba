from .blocks import csv_blocks as csv_blocks
from .categories import (
    category as category,
    composed as composed,
    is_missing as is_missing,
    positions as positions,
)
from .column_cells import (
    TypedCells as TypedCells,
    cells_in as cells_in,
    column_parts as column_parts,
    filled as filled,
    is_untyped as is_untyped,
    text_chunks as text_chunks,
    unmasked as unmasked,
)
from .csv_text import CsvForm as CsvForm, csv_header as csv_header, csv_rows as csv_rows
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
from .kinds import (
    KINDS as KINDS,
    ColumnKind as ColumnKind,
    Declared as Declared,
    DeclaredKeys as DeclaredKeys,
    Scalar as Scalar,
    TickReader as TickReader,
    column_of as column_of,
    other_dates as other_dates,
)
from .number_blocks import (
    Block as Block,
    block_of as block_of,
    blocks_of as blocks_of,
    chunk_of as chunk_of,
    number_type as number_type,
    present_in as present_in,
)
from .numbers import (
    TRUTH as TRUTH,
    double_of as double_of,
    number_in as number_in,
    numbers_in as numbers_in,
    otherwise_written as otherwise_written,
    restated as restated,
)
from .plain_lists import (
    LARGEST as LARGEST,
    cells_as as cells_as,
    hardly_any as hardly_any,
    typed as typed,
    whole_or_zero as whole_or_zero,
    with_presence as with_presence,
)
from .sources.database import why_not as why_not
from .table import (
    SOURCES as SOURCES,
    Origin as Origin,
    Table as Table,
    open_table as open_table,
    source_name as source_name,
    without_password as without_password,
)
from .text_cells import (
    arrow_texts as arrow_texts,
    text_type as text_type,
)
from .written import (
    CSV_ENDS as CSV_ENDS,
    Written as Written,
    csv_form as csv_form,
    has_tabs as has_tabs,
)
