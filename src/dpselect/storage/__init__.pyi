from .csv_text import CsvForm as CsvForm, csv_header as csv_header, csv_rows as csv_rows
from .durable import write_atomically as write_atomically
from .heads import HeadFile as HeadFile, KeptHead as KeptHead
from .keys import KeyPlace as KeyPlace, key_place as key_place, state_folder as state_folder
from .text_cells import (
    arrow_texts as arrow_texts,
    cells_of as cells_of,
    text_chunks as text_chunks,
    text_type as text_type,
)
