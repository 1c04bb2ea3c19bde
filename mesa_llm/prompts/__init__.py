"""What a language model is told in fixed words: templates, `prompts/*.md`, filled in by jinja2.

The library's own templates are in this folder. A model's are in a folder `prompts` beside the file that defines its
class, and replace those of the same name: put a file `survey_question.md` there, and your agents are interviewed in
your words. What agents see of a world is written by functions instead, for speed: see the `text.py` of each world.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from mesa_llm.errors import ConfigError

FOLDER = "prompts"
"""Name of the folder beside the code."""

WORDINGS = "variants"
"""Name of the folder, beside the templates, of folders with the same templates in other words."""

LIBRARY = Path(__file__).parent
"""Folder of the library's own templates."""

_VARIABLE = re.compile(r"\{\{-? *([A-Za-z_]\w*) *-?\}\}")
_UNFILLED = re.compile(r"\{\{-?\s*[A-Za-z_][^{}]*\}\}|\{%-?\s*[A-Za-z_][^{}]*%\}")
_BEYOND_VARIABLES = re.compile(r"\{[%#]|\{\{-|-\}\}")


class PromptFile:
    """A template: the text of a prompt, with variables.

    Attributes:
        path: The file.
        text: Its text, as it is in the file.
    """

    __slots__ = ("_names", "_pattern", "_template", "path", "text")

    def __init__(self, path: str) -> None:
        """Read the file.

        Args:
            path: The file.

        Raises:
            ConfigError: If it is no template.
        """
        self.path = path
        self.text = Path(path).read_text(encoding="utf-8")
        self._pattern, self._names = _pattern_of(self.text)
        self._template: Any = self._compiled() if self._pattern is None else None

    def _compiled(self) -> Any:
        from jinja2 import Environment, StrictUndefined, TemplateError

        environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
        try:
            return environment.from_string(self.text)
        except TemplateError as error:
            raise ConfigError(f"{self.path}: {error}") from error

    def fill(self, values: Mapping[str, Any]) -> str:
        """Fill in the variables, without the line ends around the text.

        Args:
            values: Variables of the template.

        Raises:
            ConfigError: If a variable has no value.
        """
        if self._pattern is not None:
            try:
                return (self._pattern % tuple([values[name] for name in self._names])).strip("\n")
            except KeyError as error:
                raise ConfigError(f"{self.path}: {error} is undefined") from None
        from jinja2 import TemplateError

        try:
            return self._template.render(values).strip("\n")
        except TemplateError as error:
            raise ConfigError(f"{self.path}: {error}") from error


def _pattern_of(text: str) -> tuple[str | None, tuple[str, ...]]:
    """Write a template for the operator `%`, and list its variables; None if it holds more than variables.

    Most templates are that simple, and are filled in much faster this way than by jinja2.
    """
    pieces = _VARIABLE.split(text)
    if _BEYOND_VARIABLES.search(text) or any("{{" in piece for piece in pieces[::2]):
        return None, ()
    return "%s".join(piece.replace("%", "%%") for piece in pieces[::2]), tuple(pieces[1::2])


def require_no_template(text: str, what: str, remedy: str, known: str = "") -> None:
    """Check that a text that is sent as it stands is no template: only files in folders `prompts` are filled in.

    Args:
        text: The text, as its author has written it.
        what: What it is, for the message.
        remedy: What to do about it.
        known: Data that the text may quote, braces and all.

    Raises:
        ConfigError: If it holds a variable or a statement of jinja2.
    """
    for unfilled in _UNFILLED.findall(text):
        if unfilled not in known:
            raise ConfigError(f"{what} holds the template {unfilled:.60}, which nothing fills in; {remedy}")


class Prompts:
    """The templates that the agents of a model read: its own, those of the classes it inherits from, the library's.

    Each is looked up once, until `forget` is called: it may be edited while a model runs.
    """

    __slots__ = ("_files", "kind", "wording")

    def __init__(self, kind: type[Any] = object, wording: str = "") -> None:
        """Start with no template looked up.

        Args:
            kind: Class of the model; by default none, for the library's templates alone.
            wording: Name of a folder in `variants` beside the templates, whose files replace those of the same name.
        """
        self.kind = kind
        self.wording = wording
        self._files: dict[str, PromptFile] = {}

    def __getitem__(self, name: str) -> PromptFile:
        """Return a template by its file name."""
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = open_prompt(self.kind, name, self.wording)
        return file

    def fill(self, name: str, /, **values: Any) -> str:
        """Fill in a template.

        Args:
            name: File name, such as `survey_question.md`.
            **values: Variables of the template.

        Raises:
            ConfigError: If there is no such file, or one of its variables has no value.
        """
        return self[name].fill(values)

    def forget(self) -> None:
        """Look up every template anew when it is next used."""
        self._files.clear()

    def digests(self) -> dict[str, str]:
        """Return a digest of every template, and of every `text.py`, by file name, to tell later which have changed."""
        digests = _library_digests().copy()
        for folder in reversed(_folders(self.kind, self.wording)[:-1]):
            digests |= {path.name: _file_digest(path) for path in sorted(Path(folder).glob("*.md"))}
            if (text := Path(folder).with_name("text.py")).is_file():
                digests[text.name] = _file_digest(text)
        return digests


def prompts_of(model: Any) -> Prompts:
    """Return the templates of a Mesa model: those of an `LLMModel` are looked up again in each step."""
    prompts = getattr(model, "_prompts", None)
    return prompts if type(prompts) is Prompts else _prompts_of_class(type(model))


@lru_cache(maxsize=256)
def _prompts_of_class(kind: type[Any]) -> Prompts:
    return Prompts(kind)


@cache
def _library_digests() -> dict[str, str]:
    """Compute the digests of the library's own files; they do not change while a process runs."""
    texts = sorted(LIBRARY.parent.glob("*/**/text.py"))
    templates = {path.name: _file_digest(path) for path in sorted(LIBRARY.glob("*.md"))}
    return templates | {path.relative_to(LIBRARY.parent).as_posix(): _file_digest(path) for path in texts}


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


LIBRARY_PROMPTS = Prompts()
"""The library's templates, for texts that belong to no model."""


def find_prompt(kind: type[Any], name: str, wording: str = "") -> Path | None:
    """Find a template of a class, of the first class that it inherits from and that has one, or of the library.

    Args:
        kind: The class; the folder `prompts` lies beside the file that defines it.
        name: File name, such as `instructions.md`.
        wording: Name of a folder in `variants` that is searched first.

    Returns:
        The file; None if there is none.
    """
    found = _found(kind, name, wording)
    return None if found is None else Path(found[0])


def wordings_of(kind: type[Any]) -> list[str]:
    """List the wordings of a class's own templates, or of the library's: the folders in `variants` beside them.

    Args:
        kind: The class.
    """
    places = [Path(folder) / WORDINGS for folder in _folders(kind)]
    return sorted({one.name for place in places if place.is_dir() for one in place.iterdir() if any(one.glob("*.md"))})


def templates_in(kind: type[Any], wording: str) -> set[str]:
    """Return the file names of the templates that a wording of a class replaces.

    Args:
        kind: The class.
        wording: Name of the wording.
    """
    places = [Path(folder) / WORDINGS / wording for folder in _folders(kind)]
    return {path.name for place in places for path in place.glob("*.md")}


def _found(kind: type[Any], name: str, wording: str = "") -> tuple[str, int, int] | None:
    """Return a template's file, its modification time and its size: it may be edited while a model runs."""
    for folder in _folders(kind, wording):
        path = f"{folder}{os.sep}{name}"
        try:
            state = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(state.st_mode):
            return path, state.st_mtime_ns, state.st_size
    return None


@lru_cache(maxsize=256)
def _folders(kind: type[Any], wording: str = "") -> tuple[str, ...]:
    """List the folders of templates of a class, its own first and the library's last; each after that of a wording."""
    folders = (*dict.fromkeys(_own_folders(kind)), str(LIBRARY))
    if not wording:
        return folders
    return tuple(place for folder in folders for place in (f"{folder}{os.sep}{WORDINGS}{os.sep}{wording}", folder))


def _own_folders(kind: type[Any]) -> Iterator[str]:
    for cls in kind.__mro__:
        if cls.__module__.startswith("mesa_llm."):  # models of users come before the library's own classes
            return
        with suppress(OSError, TypeError):  # built in, or defined in a notebook
            yield str(Path(inspect.getfile(cls)).parent / FOLDER)


def open_prompt(kind: type[Any], name: str, wording: str = "") -> PromptFile:
    """Read a template of a class; see `find_prompt`.

    Args:
        kind: The class.
        name: File name.
        wording: Name of a folder in `variants` that is searched first.

    Raises:
        ConfigError: If there is no such file, or it is no template.
    """
    found = _found(kind, name, wording)
    if found is None:
        raise ConfigError(f"{kind.__name__} has no {FOLDER}/{name}; put it beside the file that defines the class")
    return _opened(*found)


@lru_cache(maxsize=512)
def _opened(path: str, _changed: int, _size: int) -> PromptFile:
    return PromptFile(path)
