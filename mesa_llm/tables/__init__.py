"""Read tables and text files in the formats that users have, without altering any cell."""

from mesa_llm.tables.encodings import decoded, numbered_lines, read_bytes, read_text
from mesa_llm.tables.rows import PlacedRow, Row, folded, number_in, plain_number
from mesa_llm.tables.separated import lines_of, records_of, separator_of
from mesa_llm.tables.table import kind_of, read_table, whole_rows

__all__ = [
    "PlacedRow",
    "Row",
    "decoded",
    "folded",
    "kind_of",
    "lines_of",
    "number_in",
    "numbered_lines",
    "plain_number",
    "read_bytes",
    "read_table",
    "read_text",
    "records_of",
    "separator_of",
    "whole_rows",
]
