from .arrays import (
    archive_headers as archive_headers,
    array_of as array_of,
    arrays_of as arrays_of,
    check_archive as check_archive,
)
from .files import lines_of as lines_of, read_content as read_content, unpacked as unpacked
from .json_text import JsonFeed as JsonFeed, json_file as json_file, json_of as json_of
from .limits import DecodingLimits as DecodingLimits, LimitError as LimitError
from .numbers import fraction_of as fraction_of
from .toml_text import toml_of as toml_of
