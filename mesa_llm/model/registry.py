"""Finds models: ours, and those that other packages add through the entry-point group `mesa_llm.models`.

An entry point names a package with a `model` module (`mine = mypackage`), or a class (`mine = mypackage.model:Mine`):
that is one model, listed under the entry point's name. If the package has no `model` module, models are looked for in
the packages inside it, and listed under their names. A model that cannot be imported is listed with its error, and
affects no other.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module, resources
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from mesa_llm.errors import ConfigError
from mesa_llm.model.identity import class_named, name_of, object_named
from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording
from mesa_llm.text import suggestion

GROUP = "mesa_llm.models"
"""The entry-point group."""


@dataclass(frozen=True)
class ModelEntry:
    """A model that was found."""

    name: str
    """Name of its entry point, or of its folder."""

    package: str
    """Its package: `README.md` and, if it has a page, `app` are in it; empty if its module is in none."""

    error: str = ""
    """Why it cannot be used; empty if it can."""

    module: str = ""
    """The module that holds its class."""

    qualname: str = ""
    """Its class; empty: the one LLMModel that the module defines."""

    def load(self) -> type[LLMModel]:
        """Import its model class.

        Raises:
            ConfigError: If it cannot be imported, or its module does not define exactly one model.
        """
        if self.error:
            raise ConfigError(f"the model {self.name!r} cannot be used: {self.error}")
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

    @property
    def question(self) -> str:
        """The model's question: the first line after `## Question` in its README, else of its docstring."""
        readme = resources.files(self.package).joinpath("README.md") if self.package else None
        if readme is not None and readme.is_file():
            lines = [line.strip() for line in readme.read_bytes().decode("utf-8", "replace").splitlines()]
            for index, line in enumerate(lines):
                if line.lstrip("#").strip() == "Question":
                    return next((text for text in lines[index + 1 :] if text), "")
        return next(iter(inspect.cleandoc(self.load().__doc__ or "").splitlines()), "")

    @property
    def has_page(self) -> bool:
        """Whether it has a page of its own."""
        return bool(self.package) and find_spec(f"{self.package}.app") is not None


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
        kind = class_named(name, LLMModel)
        package = module if hasattr(import_module(module), "__path__") else module.rpartition(".")[0]
        return ModelEntry(kind.__name__, package, "", module, qualname)
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
        wanted: Name of a model, to import its object alone; empty: all.

    Returns:
        Name of a model → its object; and name of a model → reason why its object cannot be used.
    """
    parts: dict[str, T] = {}
    broken: dict[str, str] = {}
    for entry in find_models():
        place = f"{entry.package}.{module}"
        try:
            if not entry.package or entry.error or find_spec(place) is None:
                continue
            if not wanted or same_name(wanted, entry.name):
                parts[entry.name] = part_named(f"{place}:{module.upper()}", kind)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody else's module; it is listed with its error
            broken[entry.name] = _fault_text(error)
    return parts, broken


def part_named[T](name: str, kind: type[T]) -> T:
    """Import an object by its `module:NAME`.

    Raises:
        ConfigError: If there is none, or it is of another class.
    """
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
    for name in [*strangers, *([] if is_listed else [recording.model])]:
        raise ConfigError(
            f"{str(recording.file)!r} names {name}, which belongs to none of the models of `mesa-llm list`, and a "
            "replay would import and run it; if you know where this log comes from, add --trust"
        )


def _points() -> list[EntryPoint]:
    return sorted(entry_points(group=GROUP), key=lambda point: point.name)


def _models_of(point: EntryPoint) -> Iterator[ModelEntry]:
    """Find the models of an entry point."""
    module, _, qualname = (part.strip() for part in point.value.partition(":"))
    if not qualname:
        yield from _models_in(point.name, module)
        return
    try:
        spec = find_spec(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody else's package; it is listed with its error
        yield ModelEntry(point.name, module, _fault_text(error))
        return
    is_package = spec is not None and spec.submodule_search_locations is not None
    yield ModelEntry(point.name, module if is_package else module.rpartition(".")[0], "", module, qualname)


def _models_in(name: str, package: str) -> Iterator[ModelEntry]:
    """Find the model in a package, or those in its subpackages."""
    try:
        if find_spec(f"{package}.model") is not None:
            yield ModelEntry(name, package, "", f"{package}.model")
            return
        module = import_module(package)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody else's package; it is listed with its error
        yield ModelEntry(name, package, _fault_text(error))
        return
    for inner in pkgutil.iter_modules(getattr(module, "__path__", [])):
        if inner.ispkg:
            yield from _models_in(inner.name, f"{package}.{inner.name}")


def _fault_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
