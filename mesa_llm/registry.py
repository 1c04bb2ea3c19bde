"""Finds models: ours, and those that other packages add through the entry-point group `mesa_llm.models`.

An entry point names a package with a `model` module (`mine = mypackage`), or a class (`mine = mypackage.model:Mine`):
that is one model, listed under the entry point's name. If the package has no `model` module, models are looked for in
the packages inside it, and listed under their names.

Listing models imports none of them: names and questions are read from their files. So a model that cannot be imported
affects no other, and is reported when it is used, or by `mesa-llm doctor`.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from mesa_llm.errors import ConfigError
from mesa_llm.text import suggestion

if TYPE_CHECKING:
    from mesa_llm.model.model import LLMModel
    from mesa_llm.model.recording import Recording

GROUP = "mesa_llm.models"
"""The entry-point group."""


@dataclass(frozen=True)
class ModelEntry:
    """A model that was found."""

    name: str
    """Name of its entry point, or of its folder."""

    package: str
    """Its package: `README.md` and, if it has a page, `app` are in it; empty if its module is in none."""

    module: str = ""
    """The module that holds its class."""

    qualname: str = ""
    """Its class; empty: the one LLMModel that the module defines."""

    def load(self) -> type[LLMModel]:
        """Import its model class.

        Raises:
            ConfigError: If it cannot be imported, or its module does not define exactly one model.
        """
        from mesa_llm.model.identity import class_named
        from mesa_llm.model.model import LLMModel

        try:
            module = import_module(self.module)
        except (Exception, SystemExit) as error:
            raise ConfigError(f"the model {self.name!r} cannot be imported: {_fault_text(error)}") from error
        if self.qualname:
            return class_named(f"{self.module}:{self.qualname}", LLMModel)
        classes = [
            kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__
        ]
        models = [kind for kind in classes if issubclass(kind, LLMModel)]
        if len(models) != 1:
            names = ", ".join(kind.__name__ for kind in models) or "none"
            raise ConfigError(f"{self.module} should define one LLMModel, found {names}")
        return models[0]

    @cached_property
    def folder(self) -> Path | None:
        """Folder of its package; None: it is in none."""
        paths = _search_path(self.package)
        return Path(paths[0]) if paths else None

    @property
    def question(self) -> str:
        """The model's question: the first line after `## Question` in its README, else of its class's docstring."""
        readme = None if self.folder is None else self.folder / "README.md"
        if readme is not None and readme.is_file():
            lines = [line.strip() for line in readme.read_bytes().decode("utf-8", "replace").splitlines()]
            for index, line in enumerate(lines):
                if line.lstrip("#").strip() == "Question":
                    return next((text for text in lines[index + 1 :] if text), "")
        return _summary_of(self.module, self.qualname)

    @property
    def has_page(self) -> bool:
        """Whether it has a page of its own."""
        return bool(self.package) and _spec(f"{self.package}.app") is not None


def find_models() -> list[ModelEntry]:
    """List all models by name; if two have the same name, the first one found is kept."""
    entries: dict[str, ModelEntry] = {}
    for point in _points():
        for entry in _models_of(point):
            entries.setdefault(entry.name, entry)
    return sorted(entries.values(), key=lambda entry: entry.name)


def find_model(name: str) -> ModelEntry:
    """Find a model by its name, or by the `module:Class` of any model, listed or not.

    Raises:
        ConfigError: If there is none; the text lists the known models.
    """
    module, colon, qualname = name.partition(":")
    if colon:
        from mesa_llm.model.identity import class_named
        from mesa_llm.model.model import LLMModel

        kind = class_named(name, LLMModel)
        package = module if hasattr(import_module(module), "__path__") else module.rpartition(".")[0]
        return ModelEntry(kind.__name__, package, module, qualname)
    if name.endswith(".py"):
        module = Path(name).stem
        raise ConfigError(f"{name} is a file; a model of your own is MODULE:CLASS, as {module}:MyModel, in its folder")
    models = find_models()
    matches = [entry for entry in models if same_name(name, entry.name)]
    if not matches:
        names = [entry.name for entry in models]
        text = f"there is no model {name!r}; there are: {', '.join(names) or 'none'}{suggestion(name, names)}"
        if "." in name:  # a module
            text += "; one of your own is MODULE:CLASS, such as my_model:MyModel"
        raise ConfigError(text)
    return matches[0]


def same_name(name: str, other: str) -> bool:
    """Check whether two names are the same, with hyphens for underscores."""
    return name.replace("-", "_") == other.replace("-", "_")


def find_parts[T](module: str, kind: type[T], wanted: str = "") -> tuple[dict[str, T], dict[str, str]]:
    """Find objects that packages of models define besides the model, such as a benchmark task: `TASK` in `task`.

    Args:
        module: Name of the module; the object has the same name in capitals.
        kind: Class of the objects.
        wanted: Name of a package, to import its object alone; empty: all.

    Returns:
        Name of a package → its object; and name of a package → reason why its object cannot be used.
    """
    parts: dict[str, T] = {}
    broken: dict[str, str] = {}
    for name, package in sorted(_packages().items()):
        place = f"{package}.{module}"
        if (wanted and not same_name(wanted, name)) or _spec(place) is None:
            continue
        try:
            parts[name] = part_named(f"{place}:{module.upper()}", kind)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody else's module; it is listed with its error
            broken[name] = _fault_text(error)
    return parts, broken


def part_named[T](name: str, kind: type[T]) -> T:
    """Import an object by its `module:NAME`.

    Raises:
        ConfigError: If there is none, or it is of another class.
    """
    from mesa_llm.model.identity import object_named

    found = object_named(name)
    if not isinstance(found, kind):
        raise ConfigError(f"{name} is no {kind.__name__}, but {type(found).__name__}")
    return found


def require_listed(recording: Recording, known: type[LLMModel] | None = None) -> None:
    """Check that a recorded run would import nothing but parts of listed models.

    Args:
        recording: The run.
        known: A model that need not be listed, since the caller has imported it.

    Raises:
        ConfigError: If it would import something else.
    """
    for name in unlisted(recording, known):
        raise ConfigError(
            f"{str(recording.file)!r} names {name}, which belongs to none of the models of `mesa-llm list`, and a "
            "replay would import and run it; if you know where this log comes from, add --trust"
        )


def unlisted(recording: Recording, known: type[LLMModel] | None = None) -> list[str]:
    """Return what a recorded run would import and belongs to no listed model, as `module:name`.

    Args:
        recording: The run.
        known: A model that counts as listed.
    """
    from mesa_llm.model.identity import name_of

    entries = find_models()
    packages = {"mesa_llm.memory", *(entry.package for entry in entries if entry.package)}
    module, _, qualname = recording.model.partition(":")
    is_listed = any(entry.module == module and entry.qualname in ("", qualname) for entry in entries)
    if known is not None:
        is_listed |= recording.model == name_of(known)
        packages |= {known.__module__, known.__module__.rpartition(".")[0]} - {""}
    strangers = [
        name
        for name in recording.imports
        if not any(name.startswith((f"{package}:", f"{package}.")) for package in packages)
    ]
    return [*strangers, *([] if is_listed else [recording.model])]


# -- files, none of which is imported


def _points() -> list[EntryPoint]:
    return sorted(entry_points(group=GROUP), key=lambda point: point.name)


def _models_of(point: EntryPoint) -> Iterator[ModelEntry]:
    """Find the models of an entry point."""
    module, _, qualname = (part.strip() for part in point.value.partition(":"))
    if qualname:
        yield ModelEntry(point.name, module if _search_path(module) else module.rpartition(".")[0], module, qualname)
        return
    packages = dict(_packages_in(point.name, module))
    found = [
        ModelEntry(name, package, f"{package}.model")
        for name, package in packages.items()
        if _spec(f"{package}.model") is not None
    ]
    yield from found or [ModelEntry(point.name, module, f"{module}.model")]  # it says what is missing when it is used


def _packages() -> dict[str, str]:
    """Return the packages that may define a model, a task, a game or studies, by name."""
    packages: dict[str, str] = {}
    for point in _points():
        module, _, qualname = (part.strip() for part in point.value.partition(":"))
        package = module if not qualname or _search_path(module) else module.rpartition(".")[0]
        for name, inner in [(point.name, package)] if qualname else _packages_in(point.name, package):
            if inner:
                packages.setdefault(name, inner)
    return packages


def _packages_in(name: str, package: str) -> Iterator[tuple[str, str]]:
    """Yield a package and, unless it has a model, those inside it, by name."""
    yield name, package
    if _spec(f"{package}.model") is None:
        for inner in pkgutil.iter_modules(_search_path(package)):
            if inner.ispkg:
                yield from _packages_in(inner.name, f"{package}.{inner.name}")


def _search_path(package: str) -> list[str]:
    """Return the folders of a package; none if it is a plain module, or missing."""
    spec = _spec(package) if package else None
    return [] if spec is None else list(spec.submodule_search_locations or ())


def _spec(name: str) -> ModuleSpec | None:
    """Find a module without importing the packages around it; None if there is none."""
    top, _, rest = name.partition(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    for part in filter(None, rest.split(".")):
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(f"{spec.name}.{part}", list(spec.submodule_search_locations))
    return spec


def _summary_of(module: str, qualname: str) -> str:
    """Return the first line of the docstring of a class, or of the last class with one; empty if there is none."""
    spec = _spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return ""
    try:
        tree = ast.parse(Path(spec.origin).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and qualname in ("", node.name)]
    models = [node for node in classes if any("Model" in ast.unparse(base) for base in node.bases)]
    texts = [text for node in models or classes if (text := ast.get_docstring(node))]
    return texts[-1].splitlines()[0] if texts else ""


def _fault_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
