"""Read the files of statistics packages: Stata, SPSS and SAS, with value labels in place of codes."""

from __future__ import annotations

import logging
import struct
import warnings
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.tables.encodings import MAX_BYTES
from mesa_llm.tables.frames import frame_rows
from mesa_llm.tables.rows import PlacedRow
from mesa_llm.text import counted

logger = logging.getLogger(__name__)

SPSS = (".sav", ".zsav", ".por")
"""Suffixes of SPSS's files, which pyreadstat reads."""

BROKEN = (
    *(OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, EOFError, RuntimeError, OverflowError),
    *(MemoryError, LookupError, struct.error),
)
"""Exceptions of the readers on files that they cannot read."""

EXPORT = "or export a CSV with value labels"


def statistics_rows(path: Path, known: Collection[str] = (), encoding: str | None = None) -> list[PlacedRow]:
    """Read a file of Stata (`.dta`), SPSS (`.sav`, `.zsav`, `.por`) or SAS (`.sas7bdat`, `.xpt`).

    Codes become their value labels; values that the file declares missing are left out.

    Args:
        path: The file.
        known: Not used.
        encoding: Encoding of its texts; None: as the file says.

    Raises:
        ConfigError: If a package is not installed, or the file cannot be read.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path} has {path.stat().st_size:,} bytes; files of up to {MAX_BYTES:,} are read")
    except OSError as error:
        raise ConfigError(f"{path} cannot be opened: {error.strerror}") from error
    suffix = path.suffix.lower()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if suffix in SPSS:
                frame = _spss(path, encoding)
            else:
                frame = _stata(path) if suffix == ".dta" else _sas(path, encoding)
    except BROKEN as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path} is not a readable {suffix} file: {error!s:.200}; {EXPORT[3:]}") from error
    return frame_rows(frame, str(path))


def _spss(path: Path, encoding: str | None) -> Any:
    try:
        pyreadstat: Any = import_module("pyreadstat")
    except ImportError:
        raise ConfigError(f"{path}: SPSS files are read with pyreadstat: `pip install pyreadstat`, {EXPORT}") from None
    try:
        if path.suffix.lower() == ".por":
            return pyreadstat.read_por(str(path), apply_value_formats=True)[0]
        frame = pyreadstat.read_sav(str(path), apply_value_formats=True, encoding=encoding)[0]
        declared = pyreadstat.read_sav(str(path), user_missing=True, encoding=encoding)[0]
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError) as error:
        raise ValueError(str(error)) from error
    columns = {name: int(frame[name].isna().sum() - declared[name].isna().sum()) for name in frame.columns}
    _say_missing(path, {name: n for name, n in columns.items() if n > 0})
    return frame


def _say_missing(path: Path, columns: dict[str, int]) -> None:
    if columns:
        named = ", ".join(f"{name}: {n}" for name, n in columns.items())
        total = counted(sum(columns.values()), "cell")
        logger.warning("%s: left out %s that the file declares missing, by column: %.200s", path, total, named)


def _stata(path: Path) -> Any:
    import pandas as pd

    try:
        return pd.read_stata(path, convert_categoricals=True)
    except ValueError as error:  # two codes with one label
        frame = pd.read_stata(path, convert_categoricals=False)
        logger.warning("%s: codes stay without their labels: %.200s", path, str(error).strip().partition("\n")[0])
        return frame


def _sas(path: Path, encoding: str | None) -> Any:
    import pandas as pd

    return pd.read_sas(path, encoding=encoding or ("utf-8" if path.suffix.lower() == ".xpt" else "infer"))
