"""Read tables from Parquet files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.tables.encodings import MAX_BYTES
from mesa_llm.tables.rows import MAX_CELL, PlacedRow, headed_rows, require_size

INDEX = "__index_level_0__"
"""Column in which pandas writes row numbers."""


def parquet_rows(path: Path, known: Collection[str] = (), encoding: str | None = None) -> list[PlacedRow]:
    """Read a Parquet file; dates become ISO 8601 text, and decimals become text.

    Args:
        path: The file.
        known: Not used.
        encoding: Not used.

    Raises:
        ConfigError: If pyarrow is not installed, or the file is not a Parquet file or is too large.
    """
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise ConfigError(
            f"{path}: Parquet files are read with pyarrow: `pip install pyarrow`, or save as CSV"
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            schema, n_rows = file.schema_arrow, file.metadata.num_rows
            require_size(n_rows, len(schema.names), str(path))
            texts = [field.name for field in schema if _is_text(arrow, field.type)]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            names = [name for name in schema.names if name != INDEX]
            columns = [_cells(arrow, file.read(columns=[name]), path) for name in names]
    except FileNotFoundError as error:
        raise ConfigError(f"{path} cannot be opened: {error.strerror}") from error
    except (OSError, ValueError, MemoryError, NotImplementedError, arrow.ArrowException) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path} is not a readable Parquet file: {error!s:.200}") from error
    rows: Iterator[Any] = zip(*columns, strict=True)
    return headed_rows([(0, names), *enumerate(rows, 1)], path, "row")


def _is_text(arrow: Any, kind: Any) -> bool:
    return arrow.types.is_string(kind) or arrow.types.is_large_string(kind)


def _cells(arrow: Any, table: Any, path: Path) -> list[Any]:
    """Return the cells of a single-column table.

    Raises:
        ConfigError: If they are too large.
    """
    compute = import_module("pyarrow.compute")
    cells: list[Any] = []
    size = 0
    for chunk in table.column(0).chunks:
        if not hasattr(chunk, "dictionary"):
            cells += [_plain(cell) for cell in chunk.to_pylist()]
            continue
        if _is_text(arrow, chunk.type.value_type):
            lengths = compute.binary_length(chunk.dictionary)
            size += compute.sum(lengths.take(chunk.indices)).as_py() or 0
            if size > MAX_BYTES or (compute.max(lengths).as_py() or 0) > MAX_CELL:
                raise ConfigError(f"{path}, column {table.column_names[0]!r}: the texts are too long; save as CSV")
        values = [_plain(value) for value in chunk.dictionary.to_pylist()]  # shares equal texts
        cells += [None if index is None else values[index] for index in chunk.indices.to_pylist()]
    return cells


def _plain(cell: Any) -> Any:
    """Convert a value to its JSON form; None for NaN."""
    if isinstance(cell, datetime) and cell.time() == time() and cell.tzinfo is None:
        return cell.date().isoformat()
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    if isinstance(cell, list | tuple):
        return [_plain(item) for item in cell]
    if isinstance(cell, dict):
        return {str(name): _plain(item) for name, item in cell.items()}
    if isinstance(cell, float) and cell != cell:
        return None
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    return str(cell) if isinstance(cell, Decimal) or not isinstance(cell, str | int | float | None) else cell
