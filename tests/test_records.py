"""Records are frozen dataclasses to whoever uses them, quick as their constructor is."""

import copy
import dataclasses
import inspect
import pickle

import pytest

from mesa_llm.records import Decision, LazyObservation, Observation, Reply, ToolCall


def lately() -> str:
    return "Rain."


@pytest.mark.parametrize(
    "record",
    [ToolCall("pay", {"coins": 2}), Reply("Yes.", dollars=0.5), Decision(3, answer="yes"), Observation("Rain.")],
)
def test_a_record_can_be_copied_changed_in_a_copy_and_pickled_but_not_changed(record) -> None:
    values = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    for same in (type(record)(**values), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        assert same == record
    name = next(iter(values))
    assert getattr(dataclasses.replace(record, **{name: "other"}), name) == "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, name, "other")


def test_record_constructor_makes_new_defaults_each_time() -> None:
    assert str(inspect.signature(ToolCall)).startswith("(name: 'str', arguments: 'Mapping[str, Any]' = <factory>, ")
    assert ToolCall("pay").arguments == {}
    assert ToolCall("pay").arguments is not ToolCall("pay").arguments
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'name'"):
        ToolCall()  # pyright: ignore[reportCallIssue]


def test_a_text_that_is_written_late_is_written_once_and_read_by_copies() -> None:
    seen = LazyObservation(lately, label="weather")  # pyright: ignore[reportArgumentType]
    assert dataclasses.replace(seen, label="sky").text == seen.text == copy.deepcopy(seen).text == "Rain."
