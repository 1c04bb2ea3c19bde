"""Tools and actions: what a model is told of them, and what it may do with them."""

import subprocess
import sys
from collections.abc import Callable
from typing import Annotated, Literal

import pytest
from pydantic import Field

from mesa_llm import DoNothing, ToolCall, ToolError, action, tool
from mesa_llm.errors import ConfigError
from mesa_llm.tools.toolbox import ToolBox


class Shop(DoNothing):
    name = "shop"

    @action
    def sell(self, actor: int, price: Annotated[float, Field(gt=0)], to: Literal["anna", "bo"] = "anna") -> str:
        """Sell your apple.

        Args:
            price: What you ask, in euros.
        """
        return f"{actor} sold to {to} at {price}"


class Fair(DoNothing):
    name = "fair"

    @action
    def sell(self, actor: int, what: str) -> str:
        """Sell something at the fair."""
        return what


class Seller:
    is_rich = False

    @tool(when="may_look")
    def look(self) -> str:
        """Look around."""
        return "apples"

    def may_look(self) -> bool:
        return self.is_rich


def shop_box() -> ToolBox:
    return ToolBox.of(Seller(), 3, [Shop()])


def test_the_docstring_becomes_the_description_of_tool_and_arguments() -> None:
    (spec,) = [spec for spec in shop_box().specs if spec.name == "sell"]
    assert spec.description == "Sell your apple."
    assert spec.parameters["properties"]["price"]["description"] == "What you ask, in euros."
    assert spec.parameters["required"] == ["price"]
    assert "actor" not in spec.parameters["properties"]


def test_a_call_is_converted_checked_and_run_for_the_acting_agent() -> None:
    assert shop_box().call(ToolCall("sell", {"price": "2.5"})) == "3 sold to anna at 2.5"


@pytest.mark.parametrize(
    "arguments",
    [
        {"price": float("nan")},
        {"price": float("inf")},
        {"price": -1},
        {"price": "much"},
        {"price": None},
        {},
        {"price": 1, "to": "carl"},
        {"price": 1, "hidden": True},
        {"price": 1, "to": "x" * 30_000},
        {"price": [1]},
    ],
    ids=str,
)
def test_arguments_that_do_not_fit_are_refused_in_words(arguments) -> None:
    with pytest.raises(ToolError, match=r"sell|longer"):
        shop_box().call(ToolCall("sell", arguments))


def test_numbers_that_no_database_holds_are_refused() -> None:
    class Counter:
        @action
        def count(self, n: int) -> int:
            """Count."""
            return n

    with pytest.raises(ToolError, match="too large"):
        ToolBox.of(Counter(), 1).call(ToolCall("count", {"n": 10**30}))


def test_where_nothing_can_be_used_an_action_is_refused_in_whole_sentences() -> None:
    with pytest.raises(ToolError, match=r"^there is no tool 'look'; none can be used now\.$"):
        ToolBox.of(Seller(), 1).usable.check(ToolCall("look"))


def test_a_type_that_is_imported_for_checkers_alone_is_named_with_its_tool() -> None:
    def give(to: "Neighbour") -> None:  # noqa: F821 # pyright: ignore[reportUndefinedVariable]
        """Give."""

    with pytest.raises(ConfigError, match="a type in tool 'give' cannot be found at run time: name 'Neighbour'"):
        ToolBox.of(object(), 1, [], [give])


def test_an_unknown_tool_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ToolError, match=r"no tool 'steal'.*sell"):
        shop_box().call(ToolCall("steal"))


def test_tool_names_shared_by_worlds_are_distinct_and_pass_is_offered_once() -> None:
    names = list(ToolBox.of(object(), 1, [Shop(), Fair()]))
    assert names == ["do_nothing", "shop_sell", "fair_sell"]
    assert list(ToolBox.of(object(), 1, [Shop(), Fair()]).only(["sell"])) == ["shop_sell", "fair_sell"]


def test_a_tool_is_offered_only_while_its_condition_holds() -> None:
    seller = Seller()
    assert "look" not in ToolBox.of(seller, 1).usable
    seller.is_rich = True
    assert "look" in ToolBox.of(seller, 1).usable


def test_a_researchers_own_function_becomes_a_tool() -> None:
    def weather(city: str) -> str:
        """Tell the weather."""
        return f"rain in {city}"

    box = ToolBox.of(object(), 1, [], [weather])
    assert box.call(ToolCall("weather", {"city": "Ulm"})) == "rain in Ulm"


def test_a_function_without_types_is_refused_when_it_is_given() -> None:
    def vague(x):
        """Do."""

    with pytest.raises(ConfigError, match="'x' of tool 'vague' has no type"):
        ToolBox.of(object(), 1, [], [vague])


@pytest.mark.parametrize("kind", [object(), Callable[[int], int], Literal[range], Annotated[int, Field(gt="a")]])
def test_argument_without_a_json_type_is_refused_at_definition(kind) -> None:
    def strange(x) -> None:
        """Do."""

    strange.__annotations__["x"] = kind
    with pytest.raises(ConfigError, match=r"'strange' has an argument that JSON cannot describe: .*; take a number"):
        ToolBox.of(object(), 1, [], [strange])


@pytest.mark.parametrize("mark", [lambda: action("can_pay"), lambda: tool(when=print)])  # pyright: ignore
def test_a_condition_is_the_name_of_a_method(mark: Callable[[], object]) -> None:
    with pytest.raises(ConfigError, match=r'write @action, or @action\(when="can_pay"\) with the name of a method'):
        mark()


def test_a_condition_that_is_no_method_is_named_with_its_action() -> None:
    with pytest.raises(ConfigError, match=r"Miser\.look has when='may_look', which is no method of it"):
        _ = ToolBox.of(type("Miser", (Seller,), {"may_look": property(bool)})(), 1).usable


@pytest.mark.parametrize("command", ["from mesa_llm import tool", "from mesa_llm.cli.app import main; main()"])
def test_python_that_strips_docstrings_is_refused_as_they_are_prompts(command: str) -> None:
    words = [sys.executable, "-OO", "-c", command, "run", "boltzmann_wealth", "--steps", "1"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode != 0
    assert "strips docstrings" in done.stderr.splitlines()[-1]
