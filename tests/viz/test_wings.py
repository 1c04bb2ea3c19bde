"""The wings of `mesa_llm.viz`: which of them know Solara, and where their state lies."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mesa_llm.viz

VIZ = Path(mesa_llm.viz.__file__).parent
MODULES = sorted(VIZ.rglob("*.py"))

IMMUTABLE = {
    "MappingProxyType",
    "NewType",
    "Path",
    "PerModel",  # a frozen record; the objects lie with the models
    "StrMethodFormatter",
    "Route",
    "TypeVar",
    "create_context",  # of Reacton: the values lie with the pages
    "frozenset",
    "attach_stub",
    "getLogger",
    "import_module",
    "re.compile",
    "tuple",
}
"""Functions whose results a module may keep: they hold nothing that changes."""


@pytest.mark.parametrize("wing", ["render", "session"])
def test_pictures_and_runs_are_made_without_solara(wing: str) -> None:
    files = sorted((VIZ / wing).glob("*.py"))
    names = [f"mesa_llm.viz.{wing}.{file.stem}".removesuffix(".__init__") for file in files]
    assert len(names) > 5
    code = f"import sys, {', '.join(names)}; print(*{{'solara', 'reacton', 'ipyvuetify'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def kept(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.expr]]:
    """Return what a module or a class keeps under its names."""
    for statement in body:
        match statement:
            case ast.Assign(targets=[*targets], value=value):
                yield prefix + ", ".join(map(ast.unparse, targets)), value
            case ast.AnnAssign(target=target, value=ast.expr() as value) if not prefix or "ClassVar" in ast.unparse(
                statement.annotation
            ):
                yield prefix + ast.unparse(target), value
            case ast.ClassDef(name=name, body=own):
                yield from kept(own, f"{prefix}{name}.")
            case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                yield from kept([each for each in ast.walk(statement) if isinstance(each, ast.Assign | ast.AnnAssign)])
            case _:
                pass


def can_change(value: ast.expr) -> bool:
    """Check whether a value may change after its module has been imported."""
    match value:
        case ast.Constant() | ast.Name() | ast.Attribute() | ast.JoinedStr() | ast.Subscript() | ast.Lambda():
            return False
        case ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
            return any(map(can_change, parts))
        case ast.Starred(value=part) | ast.UnaryOp(operand=part) | ast.GeneratorExp(elt=part):
            return can_change(part)
        case ast.BinOp(left=left, right=right):
            return can_change(left) or can_change(right)
        case ast.IfExp(body=body, orelse=orelse):
            return can_change(body) or can_change(orelse)
        case ast.Call(func=function):
            name = ast.unparse(function).partition("[")[0]
            return name not in IMMUTABLE and name.rpartition(".")[2] not in IMMUTABLE
        case _:
            return True


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(VIZ)))
def test_no_module_of_the_pages_keeps_anything_that_changes(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert [name for name, value in kept(tree.body) if name != "__all__" and can_change(value)] == []
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Global)]


@pytest.mark.parametrize(
    "code",
    [
        "a = []",
        "a: dict[str, int] = {}",
        "a = b = set()",
        "a = (1, [2])",
        "a = threading.Lock()",
        "a = solara.reactive(0)",
        "a = WeakKeyDictionary()",
        "class A:\n    a: ClassVar[dict[str, int]] = {}",
        "class A:\n    a = []",
        "if True:\n    a = [1]",
        "a = [each for each in b]",
    ],
)
def test_state_of_any_kind_in_a_module_is_found(code: str) -> None:
    assert any(can_change(value) for _, value in kept(ast.parse(code).body))


def test_every_vue_file_lies_beside_the_module_that_names_it() -> None:
    named = [
        file.parent / name
        for file in MODULES
        for name in re.findall(r'component_vue\("(.+?)"\)', file.read_text(encoding="utf-8"))
    ]
    assert sorted(named) == sorted(VIZ.rglob("*.vue"))
