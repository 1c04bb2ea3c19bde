"""Read tables and text files in the formats that users have, without altering any cell."""

from mesa_llm.tables.cleaning import MISSING, columns_of
from mesa_llm.tables.encodings import decoded, numbered_lines, read_bytes, read_json, read_text
from mesa_llm.tables.numbers import number_in, numbers_of, plain_number
from mesa_llm.tables.rows import PlacedRow, Record, Row, folded
from mesa_llm.tables.separated import lines_of, records_of, separator_of
from mesa_llm.tables.table import READERS, TableSource, kind_of, name_of, read_table, whole_rows
from mesa_llm.tables.workbooks import sheet_records

__all__ = [
    "MISSING",
    "READERS",
    "PlacedRow",
    "Record",
    "Row",
    "TableSource",
    "columns_of",
    "decoded",
    "folded",
    "kind_of",
    "lines_of",
    "name_of",
    "number_in",
    "numbered_lines",
    "numbers_of",
    "plain_number",
    "read_bytes",
    "read_json",
    "read_table",
    "read_text",
    "records_of",
    "separator_of",
    "sheet_records",
    "whole_rows",
]
