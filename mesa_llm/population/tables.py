"""Read personas from tables with arbitrary columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from mesa_llm.errors import ConfigError
from mesa_llm.population.persona import Persona
from mesa_llm.tables import MISSING, Row, TableSource, columns_of, folded, name_of, read_table, whole_rows
from mesa_llm.text import clip

COLUMNS: dict[str, tuple[str, ...]] = {
    "name": ("name", "realname", "real_name", "full_name"),
    "persona": ("persona", "user_char", "background", "biography"),
    "style": ("style", "way_of_speaking"),
    "username": ("username", "user_name", "handle"),
    "bio": ("bio", "description"),
    "topics": ("topics", "interested_topics", "interests"),
}
"""Field of a persona → names of its columns; the first one found is used. All other columns are traits."""

GIVEN, FAMILY = "first_name", "last_name"
"""Columns that together hold a name."""

IDENTIFYING = ("name", "persona", "username", "bio")
"""Fields that identify people; every table needs at least one."""

KNOWN = frozenset(name for names in COLUMNS.values() for name in names) | {GIVEN, FAMILY}
"""Names of all these columns."""

MAX_TEXT = 100_000
"""Maximum number of characters of a cell that goes into prompts."""

ItemFault = Callable[[str], None]
"""Receives the reason why a cell, or an item in it, is left out; may raise an error instead."""


def from_table(table: TableSource, *, missing: Collection[str] = MISSING, encoding: str | None = None) -> list[Persona]:
    """Build a persona from each row of a table.

    Columns named in `COLUMNS` fill those fields, regardless of case; all others become traits under their own name. A
    name may also be split into `first_name` and `last_name`. Topics are a list, or separated by semicolons. Empty cells
    are left out.

    Args:
        table: A file, see `mesa_llm.tables.read_table`, a DataFrame, a list of dictionaries, or a dictionary of lists.
        missing, encoding: As for `read_table`.

    Raises:
        ConfigError: If the file cannot be read, no column holds names or personas, or a cell cannot be used.
    """
    source = name_of(table)
    placed = read_table(table, KNOWN, missing=missing, encoding=encoding)
    rows = [person_row(row, source) for row in whole_rows(table, placed) if row]
    require_people(rows, source)
    return [persona_of(row, source, row_number) for row_number, row in enumerate(rows, start=1)]


def require_people(rows: Sequence[Row], source: str) -> None:
    """Check that a table describes people.

    Raises:
        ConfigError: If no column identifies them.
    """
    columns = columns_of(rows)
    known = [column for column in columns if folded(column) in KNOWN]
    for column in known:
        if len(alike := [one for one in known if folded(one) == folded(column)]) > 1:
            raise ConfigError(f"{source}: the columns {', '.join(map(repr, alike))} mean the same; rename all but one")
    names = {name for field in IDENTIFYING for name in COLUMNS[field]} | {GIVEN, FAMILY}
    if rows and not any(folded(column) in names for column in columns):
        columns_text = clip(", ".join(map(repr, columns)), 300)
        raise ConfigError(
            f"{source} has the columns {columns_text}; a population needs a column 'name' or 'persona' "
            f"(also accepted: {', '.join(sorted(names - {'name', 'persona'}))}). Rename one, or add one"
        )


def person_row(row: Row, source: str) -> Row:
    """Flatten a TinyTroupe persona (`*.agent.json`), or an object `traits`, into cells; return other rows unchanged.

    Scalar facts become columns; lists and objects become part of the text.

    Raises:
        ConfigError: If it is only a fragment of a persona.
    """
    inner = row.get("persona", row.get("_persona"))
    if not isinstance(inner, dict):
        return _with_traits(row)
    if row.get("type") == "Fragment":
        raise ConfigError(f"{source} holds a fragment of a TinyTroupe persona; wanted a whole persona")
    facts = {
        str(name): value for name, value in cast("dict[Any, Any]", inner).items() if value not in (None, "", [], {})
    }
    nested = {name: value for name, value in facts.items() if isinstance(value, list | dict)}
    cells = {name: value for name, value in facts.items() if name not in nested and name != "persona"}
    text = "\n".join([*map(str, [facts["persona"]] if "persona" in facts else []), *_outline(nested)])
    return cells | ({"persona": text} if text else {})


def _with_traits(row: Row) -> Row:
    """Return a row with the facts of its object `traits`, as EDSL and `Persona` write it, as cells of their own."""
    traits = row.get("traits")
    if not isinstance(traits, dict) or traits.keys() & row.keys():
        return row
    return {name: cell for name, cell in row.items() if name != "traits"} | cast("Row", traits)


def _outline(value: Any, depth: int = 0) -> list[str]:
    """Write nested facts as an indented outline."""
    lines: list[str] = []
    indent = "  " * (depth - 1) + "- " if depth else ""
    named = value.items() if isinstance(value, dict) else [("", item) for item in value]
    for name, item in named:
        label = str(name).replace("_", " ")
        label = f"{label[:1].upper()}{label[1:]}: " if label else ""
        if isinstance(item, list | dict):
            lines += [f"{indent}{label}".rstrip()] if label else []
            lines += _outline(item, depth + bool(label or not depth))
        else:
            lines.append(f"{indent}{label}{item}")
    return lines


def persona_of(row: Row, source: str, row_number: int, fault: ItemFault | None = None, **fields: Any) -> Persona:
    """Build a persona from one row.

    Args:
        row: Cells by column.
        source: File and line, for errors.
        row_number: Number of the row, from 1, for errors.
        fault: Receives the reason why a cell is left out; None: raise an error instead.
        **fields: Fields that have been read already.

    Raises:
        ConfigError: If a cell cannot be used.
    """
    columns = {folded(column): column for column in row}
    fault = fault or _refuse
    used_columns: set[str] = set()
    for field, names in COLUMNS.items():
        column = next((columns[name] for name in names if name in columns), None)
        if field not in fields and column is not None:
            used_columns.add(column)
            reason = fault_of(row[column], is_text=field != "topics")
            if reason:
                fault(f"{place(source, row_number, column)}: {reason}")
            else:
                fields[field] = _topics(row[column]) if field == "topics" else str(row[column])
    if "name" not in fields and (parts := [columns[name] for name in (GIVEN, FAMILY) if name in columns]):
        used_columns.update(parts)
        fields["name"] = " ".join(str(row[column]) for column in parts)
    if "traits" not in fields:
        fields["traits"] = traits = {}
        for column, cell in row.items():
            if column not in used_columns:
                if reason := fault_of(cell, is_text=False):
                    fault(f"{place(source, row_number, column)}: {reason}")
                else:
                    traits[column] = cell
    try:
        return Persona(**fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path_text = clip(".".join(str(part) for part in first["loc"]), 80)
        raise ConfigError(
            f"{source}, row {row_number}, {path_text}: {first['msg']}; found {first['input']!r:.80}"
        ) from None


def place(path: str | Path, row_number: int, column: str) -> str:
    """Describe the location of a cell, for errors."""
    return f"{path}, row {row_number}, column {column!r}"


def _refuse(reason: str) -> None:
    raise ConfigError(reason)


def fault_of(cell: Any, *, is_text: bool = True) -> str:
    """Describe what is wrong with a cell; empty if nothing is.

    Args:
        cell: The cell.
        is_text: Whether its column is text, not a list.
    """
    if is_text and isinstance(cell, (list, tuple, dict)):
        return f"found {cell!r:.80}; this column is text"
    if isinstance(cell, float) and not math.isfinite(cell):
        return f"found {cell!r}; wanted a finite number"
    if isinstance(cell, str) and len(cell) > MAX_TEXT:
        return f"found a text of {len(cell):,} characters; wanted up to {MAX_TEXT:,}, as it is part of every prompt"
    return ""


def _topics(cell: Any) -> tuple[str, ...]:
    parts: Sequence[Any] = cell if isinstance(cell, (list, tuple)) else str(cell).split(";")
    return tuple(str(part).strip() for part in parts if str(part).strip())
