"""Pages that are made each time the documentation is built: reference, models, prompts, notebooks and course.

They are written to the folders of `MADE`, which git ignores.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin

import links

import mesa_llm
from mesa_llm.model.scenario import Parameter, parameters_of
from mesa_llm.prompts import LIBRARY, WORDINGS
from mesa_llm.registry import ModelEntry, find_models

ROOT = Path(__file__).resolve().parents[1]

PARTS = {
    "Models and runs": ["model", "engine", "prompts", "runlog", "statistics", "reports", "testing", "registry"],
    "Agents": ["agents", "config", "memory", "tools", "space", "population"],
    "Language models": ["llm", "records", "canonical", "errors", "text"],
    "Worlds": [
        "world",
        "questionnaire",
        "mesa_llm_models.auction_arena.world",
        "mesa_llm_models.discussion.world",
        "mesa_llm_models.econ_agent.world",
        "mesa_llm_models.economy.world",
        "mesa_llm_models.market.world",
        "mesa_llm_models.social.world",
        "mesa_llm_models.stock_agent.world",
    ],
    "Experiments": [
        "experiments.findings",
        "experiments.runs.sweep",
        "experiments.runs.power",
        "experiments.audits.audit",
        "experiments.audits.claim",
        "experiments.audits.dimensions",
        "experiments.audits.findings",
        "experiments.audits.verdict",
        "experiments.audits.wording",
        "experiments.calibration.calibration",
        "experiments.calibration.target",
        "experiments.calibration.posterior",
        "experiments.calibration.sensitivity",
        "experiments.calibration.ranges",
        "experiments.runs.study",
        "experiments.runs.arms",
        "experiments.people.comparison",
        "experiments.people.survey",
        "experiments.people.answers",
        "experiments.people.distributions",
        "experiments.people.prediction_powered",
        "experiments.people.agreement",
        "experiments.runs.branch",
        "experiments.runs.recordings",
        "experiments.distillation",
        "experiments.benchmarks",
        "experiments.tournament",
    ],
    "Pages": ["viz", "charts.chart", "charts.scenes"],
}
"""Part of the reference → packages and modules in it, in order; those of `mesa_llm` by their short names."""


def write(docs: Path) -> None:
    """Write all of them, and remove those of an earlier build.

    Args:
        docs: Folder of the documentation.
    """
    for folder, pages in MADE.items():
        shutil.rmtree(docs / folder, ignore_errors=True)
        for name, text in pages():
            file = docs / folder / f"{name}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


@cache
def pages_of_files() -> dict[Path, str]:
    """Return the page of each file and folder that has one."""
    library, models, notebooks = (ROOT / name for name in ("mesa_llm", "models", "notebooks"))
    pages = {library: "reference/index", models: "models/index"}
    pages[notebooks] = "notebooks/index"
    for module in (module for modules in PARTS.values() for module in modules):
        package = models if is_within(module, "mesa_llm_models") else library
        place = package / module.replace(".", "/")
        pages |= dict.fromkeys((place, place.with_suffix(".py"), place / "__init__.py"), f"reference/{module}")
    pages[LIBRARY] = "prompts/index"
    for entry in own_models():
        folder = folder_of(entry)
        pages |= dict.fromkeys((folder.parent, folder.parent / "README.md"), "models/index")
        pages |= dict.fromkeys((folder, folder / "README.md"), f"models/{entry.name}")
    pages |= {file: f"notebooks/{file.stem}" for file in notebooks.glob("*.ipynb")}
    for file in course_files():
        pages[file] = f"course/{course_name(file)}"
        if file.name == "README.md":
            pages[file.parent] = pages[file]
    return pages | {file: file.stem for file in links.DOCS.glob("*.md")}


def linked(text: str, file: Path, page: str) -> str:
    """Turn the links of a text to files into links to their pages; see `links.to_pages`."""
    return links.to_pages(text, file, page, pages_of_files())


def contents(names: list[str], caption: str = "") -> str:
    """Return a table of contents of the pages with these names."""
    options = ":maxdepth: 1\n" + (f":caption: {caption}\n" if caption else "")
    return "```{toctree}\n" + options + "\n" + "\n".join(names) + "\n```\n"


# -- reference


def reference_pages() -> Iterator[tuple[str, str]]:
    """Make the reference: a page a package, and the page that lists them."""
    text = "# Reference\n\nWhat `from mesa_llm import …` brings stands under its short name, `mesa_llm.NAME`.\n\n"
    for part, modules in PARTS.items():
        text += contents(modules, part) + "\n"
        for name in modules:
            yield (
                name,
                reference_page(import_module(name if is_within(name, "mesa_llm_models") else f"mesa_llm.{name}")),
            )
    yield "index", text


def reference_page(module: ModuleType) -> str:
    """Make the page of a package or module: its docstring, and all that is public in it."""
    text = f"# `{module.__name__}`\n\n```{{eval-rst}}\n.. automodule:: {module.__name__}\n   :no-members:\n"
    for name, value in public(module):
        text += f"\n.. {directive_of(value)}:: {name}\n"
        if inspect.isclass(value):
            text += f"   :members:\n   :inherited-members: {', '.join(foreign_bases(value))}\n   :show-inheritance:\n"
    return text + "```\n"


def foreign_bases(kind: type[Any]) -> list[str]:
    """Name the bases of a class whose members are not listed with its own: other packages', and public ones."""
    public_classes = [getattr(mesa_llm, name) for name in mesa_llm.__all__]
    documented = {base for public in kind.__mro__[1:] if public in public_classes for base in public.__mro__}
    bases = [base for base in kind.__mro__ if base in documented or not base.__module__.startswith("mesa_llm")]
    return sorted({base.__name__ for base in bases})


def public(module: ModuleType) -> list[tuple[str, Any]]:
    """List what is public in a package or module: name to import it by, and value."""
    faces = {name: getattr(mesa_llm, name) for name in mesa_llm.__all__}
    short = {name: value for name, value in faces.items() if not inspect.ismodule(value)}
    own = {f"mesa_llm.{name}": value for name, value in short.items() if is_within(value.__module__, module.__name__)}
    names = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if not name.startswith("_") and is_defined_in(module, value)
    ]
    for name in names:
        value = getattr(module, name)
        if not any(value is other for other in short.values()):
            own[f"{home_of(module, name, value)}.{name}"] = value
    return sorted(own.items(), key=lambda pair: pair[0].rpartition(".")[2].lower())


def home_of(module: ModuleType, name: str, value: Any) -> str:
    """Return the module that a public name is documented in: constants have their text where they are defined."""
    if has_own_text(value):
        return module.__name__
    definition = re.compile(rf"^{name}(:| =)", re.MULTILINE)
    inner = (home for home in sorted(sys.modules) if is_within(home, module.__name__))
    return next(home for home in inner if definition.search(inspect.getsource(sys.modules[home])))


def is_within(name: str, module: str) -> bool:
    """Check whether a module is another one, or inside it."""
    return f"{name}.".startswith(f"{module}.")


def is_defined_in(module: ModuleType, value: Any) -> bool:
    """Check whether a class or function is defined in a module, and not imported there."""
    return (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__ == module.__name__


def has_own_text(value: Any) -> bool:
    """Check whether a value brings its docstring: a class or function, and no constant or name of a type."""
    return callable(value) and get_origin(value) is None


def directive_of(value: Any) -> str:
    """Return the directive of autodoc for a value."""
    if inspect.isclass(value):
        return "autoexception" if issubclass(value, BaseException) else "autoclass"
    return "autofunction" if has_own_text(value) else "autodata"


# -- models


def model_pages() -> Iterator[tuple[str, str]]:
    """Make a page a model of this project, and the page that lists them."""
    entries = own_models()
    rows = "\n".join(f"| [{entry.name}]({entry.name}.md) | {entry.question} |" for entry in entries)
    text = f"# Models\n\n| model | question |\n|---|---|\n{rows}\n\n"
    for entry in entries:
        yield entry.name, model_page(entry)
    yield "index", text + contents([entry.name for entry in entries])


def own_models() -> list[ModelEntry]:
    """List the models of this project."""
    return [entry for entry in find_models() if is_within(entry.package, "mesa_llm_models")]


def folder_of(entry: ModelEntry) -> Path:
    """Return the folder of a model of this project."""
    return ROOT / Path("models", *entry.package.split("."))


def model_page(entry: ModelEntry) -> str:
    """Make the page of a model: its README, its parameters, and how to run it."""
    folder = folder_of(entry)
    file = folder / "README.md"
    readme = linked(file.read_text(encoding="utf-8").rstrip(), file, f"models/{entry.name}")
    rows = "\n".join(parameter_row(parameter) for parameter in parameters_of(entry.load()))
    picture = f"\n![Its page](../../{folder.relative_to(ROOT).as_posix()}/page.png)\n"
    return (
        readme
        + f"\n\n## Parameters\n\n`mesa-llm list {entry.name}` prints them; `--set NAME=VALUE` changes one.\n\n"
        + f"| parameter | default | range | meaning |\n|---|---|---|---|\n{rows}\n\n"
        + f"## Run it\n\n```sh\n{commands(entry)}\n```\n"
        + (picture if (folder / "page.png").exists() else "")
    )


def parameter_row(parameter: Parameter) -> str:
    """Write a row of the table of parameters."""
    default = "" if parameter.default is inspect.Parameter.empty else f"`{parameter.default!r}`"
    cells = (f"`{parameter.name}`", default, parameter.range, parameter.meaning)
    return "| " + " | ".join(in_cell(cell) for cell in cells) + " |"


def in_cell(text: str) -> str:
    """Write a text so that it stays in one cell of a table in Markdown."""
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def commands(entry: ModelEntry) -> str:
    """Return the commands that run a model without a key."""
    lines = [f"mesa-llm run {entry.name} --llm rule", f"mesa-llm run {entry.name} --llm random --log run.sqlite"]
    return "\n".join([*lines, f"mesa-llm app  # its page is under {entry.name}"] if entry.has_page else lines)


# -- prompts

SOURCES = (ROOT / "mesa_llm", ROOT / "models")
"""Folders of the code."""

PROMPTS = """# Prompts

All that a language model reads is in two kinds of place: templates (`prompts/*.md`, filled in by jinja2), and the
`text.py` of a world, a model or a part of the library, whose functions put into words what agents see, what came of
their actions, and why something is refused. The docstrings of actions and tools are templates, too: they describe a
tool to the model. This page is made of these files.

A file of the same name in the folder `prompts` of your model takes the place of a template of the library. What agents
see of a world is replaced by a subclass that names a module of its own: `wording = my_text`.

Below a template stand its rewordings, files of the same name in `prompts/variants/NAME/` that say it in other words.
Audits try them, and a design chooses one with `presentation=Presentation(wording="NAME")`.
"""
"""Beginning of the page of prompts."""


def prompt_pages() -> Iterator[tuple[str, str]]:
    """Make the page that lists every prompt, with the places where it is used."""
    parts = [PROMPTS, "## Templates of the library\n", *map(template_entry, sorted(LIBRARY.glob("*.md")))]
    parts.append("## What agents see and what came of their actions\n\n| file | text |\n|---|---|")
    parts += [text_row(path) for path in sorted(path for folder in SOURCES for path in folder.rglob("text.py"))]
    parts.append("\n## Actions and tools\n\n| action | defined in | text |\n|---|---|---|")
    parts += [row for path, code in sources().items() for row in action_rows(path, code)]
    parts.append("\n## Templates of the models\n")
    parts += [template_entry(path) for path in sorted(SOURCES[1].rglob("prompts/*.md"))]
    yield "index", "\n".join(parts) + "\n"


@cache
def sources() -> dict[Path, str]:
    """Read all files of code, the library's first."""
    files = [path for folder in SOURCES for path in sorted(folder.rglob("*.py"))]
    return {path: path.read_text(encoding="utf-8") for path in files}


def template_entry(path: Path) -> str:
    """Write the entry of a template: its name, where it is used, its text, and its rewordings."""
    places = ", ".join(f"`{place.relative_to(ROOT).as_posix()}`" for place in users_of(path))
    own = f"### `{path.relative_to(ROOT).as_posix()}`\n\nUsed in {places}.\n\n{in_fence(path)}"
    variants = sorted((path.parent / WORDINGS).glob(f"*/{path.name}"))
    return own + "".join(f"\nRewording `{one.parent.name}`:\n\n{in_fence(one)}" for one in variants)


def in_fence(path: Path) -> str:
    """Return the text of a file as a block of code."""
    return f"~~~~text\n{path.read_text(encoding='utf-8').rstrip()}\n~~~~\n"


def users_of(template: Path) -> list[Path]:
    """Find the files of code that name a template, be it by a part of its name: `f"original_{stage}.md"`."""
    is_own = template.parent != LIBRARY
    files = [path for path in sources() if not is_own or template.parent.parent in path.parents]
    named = [path for path in files if f'"{template.name}"' in sources()[path]]
    if named:
        return named
    composed = [
        path
        for path in files
        if any(fits(name, template.name) for name in composed_names(path) if is_own or not name.startswith("{"))
    ]
    return composed or ([ROOT / "mesa_llm" / "model" / "model.py"] if is_own else [])  # the instructions of a model


@cache
def composed_names(path: Path) -> list[str]:
    """Return the f-strings that end in `.md` in a file of code."""
    return re.findall(r'f"([^"]*\.md)"', sources()[path])


def fits(composed: str, name: str) -> bool:
    """Check whether an f-string can be the name of a file."""
    pattern = ".+".join(map(re.escape, re.split(r"\{[^}]*\}", composed)))
    return re.fullmatch(pattern, name) is not None


def text_row(path: Path) -> str:
    """Write a row for a `text.py`."""
    name = path.relative_to(ROOT).as_posix()
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return f"| [`{name}`](../../{name}) | {in_cell(docstring.partition(chr(10))[0])} |"


def action_rows(path: Path, code: str) -> Iterator[str]:
    """Write a row for each action and tool that a file of code defines."""
    if "@action" not in code and "@tool" not in code:
        return
    for node in ast.walk(ast.parse(code)):
        marks = {getattr(part, "id", "") for mark in getattr(node, "decorator_list", ()) for part in ast.walk(mark)}
        if isinstance(node, ast.FunctionDef) and marks & {"action", "tool"}:
            text = (ast.get_docstring(node) or "").partition("\n\nArgs:")[0]
            yield f"| `{node.name}` | `{path.relative_to(ROOT).as_posix()}` | {in_cell(text)} |"


# -- notebooks and course

NOTEBOOKS = ROOT / "notebooks"
COURSE = NOTEBOOKS / "course"

WEEK_FILES = ("notebook.ipynb", "exercises.md", "solutions.ipynb", "quiz.md", "rubric.md")
"""Files of a week that are pages, besides its README, in the order in which they are read."""


def notebook_pages() -> Iterator[tuple[str, str]]:
    """Make a page a notebook, with its outputs, and the page that lists them."""
    files = sorted(NOTEBOOKS.glob("*.ipynb"))
    for file in files:
        yield file.stem, notebook_text(file, f"notebooks/{file.stem}")
    text = "# Notebooks\n\nOne on each model; `mesa-llm notebooks` copies them into a folder, to run them.\n\n"
    yield "index", text + contents([file.stem for file in files])


def course_pages() -> Iterator[tuple[str, str]]:
    """Make the pages of the course: its syllabus, and for each week its text and its files."""
    readme = COURSE / "README.md"
    for file in course_files():
        page = course_name(file)
        if file.suffix == ".ipynb":
            yield page, notebook_text(file, f"course/{page}")
            continue
        text = linked(file.read_text(encoding="utf-8").rstrip(), file, f"course/{page}") + "\n\n"
        if file == readme:
            text += hidden_contents([f"{week.name}/index" for week in weeks()])
        elif file.name == readme.name:
            text += hidden_contents([Path(name).stem for name in WEEK_FILES if (file.parent / name).exists()])
        yield page, text


def weeks() -> list[Path]:
    """List the folders of the weeks."""
    return sorted(readme.parent for readme in COURSE.glob("*/README.md"))


def course_files() -> list[Path]:
    """List the files of the course that are pages."""
    names = ("README.md", *WEEK_FILES)
    return [COURSE / "README.md", *(week / name for week in weeks() for name in names if (week / name).exists())]


def course_name(file: Path) -> str:
    """Name the page of a file of the course."""
    name = file.relative_to(COURSE).with_suffix("").as_posix()
    return name.removesuffix("README") + "index" if file.name == "README.md" else name


def hidden_contents(names: list[str]) -> str:
    """Return a table of contents that stands beside the page alone."""
    return contents(names).replace(":maxdepth: 1\n", ":maxdepth: 1\n:hidden:\n")


def notebook_text(file: Path, page: str) -> str:
    """Write a notebook with its outputs as Markdown."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in cell_parts(cell, file, page)) + "\n"


def cell_parts(cell: dict[str, Any], file: Path, page: str) -> Iterator[str]:
    """Write a cell, and each of its outputs."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield linked(source, file, page)
        return
    code = "\n".join(line for line in source.splitlines() if not line.startswith("%"))
    yield block("python", code.strip("\n"))
    yield from map(output_text, cell["outputs"])


def output_text(output: dict[str, Any]) -> str:
    """Write an output: a picture, a table, or text."""
    if output["output_type"] == "stream":
        return block("text", "".join(output["text"]).rstrip())
    kinds = {kind: "".join(text) for kind, text in output["data"].items() if kind != "application/json"}
    if "image/png" in kinds:
        return block("{raw} html", f'<img alt="Figure" src="data:image/png;base64,{kinds["image/png"].strip()}">')
    return block("{raw} html", kinds["text/html"]) if "text/html" in kinds else block("text", kinds["text/plain"])


def block(kind: str, text: str) -> str:
    """Put a text into a block of a kind."""
    return f"````{kind}\n{text}\n````"


MADE: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {
    "reference": reference_pages,
    "models": model_pages,
    "prompts": prompt_pages,
    "notebooks": notebook_pages,
    "course": course_pages,
}
"""Folder of made pages → the function that makes them."""
