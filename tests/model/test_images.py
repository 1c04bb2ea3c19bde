"""Images in observations."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from mesa_llm import ConfigError, Image, Observation, ScriptedLLM
from mesa_llm.llm.replies import call
from tests.pot import Payer, PotModel

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Looking(PotModel):
    """Agents who see the pot."""

    def __init__(self, **options: Any) -> None:
        super().__init__(0, **options)
        Looker.create_agents(self, 2)


class Looker(Payer):
    """Sees an image of one pixel."""

    def observe(self) -> Observation:
        return replace(super().observe(), images=(Image(PIXEL),))


def test_an_image_is_sent_noted_and_replayed(tmp_path) -> None:
    sent: list[Any] = []

    def script(request: Any) -> Any:
        sent.append(request.messages[-1].to_wire()["content"])
        return call("pay", coins=1)

    model = Looking(llm=ScriptedLLM(script), log=tmp_path / "run.sqlite", rng=1)
    model.step()
    text, image = sent[0]
    assert text["text"].startswith("The pot holds 0 coins.")
    assert base64.b64decode(image["image_url"]["url"].removeprefix("data:image/png;base64,")) == PIXEL
    model.close()
    again = Looking(llm="ScriptedLLM", log=tmp_path / "run.sqlite", rng=1, replay=True)
    again.step()
    assert again.coins == 2
    assert "sha256 " in str(list(again.runlog.rows("texts")))
    assert (tmp_path / "run.sqlite").read_bytes().count(PIXEL) == 0


def test_a_language_model_that_takes_none_reads_the_text_and_that_is_said_once(caplog) -> None:
    class Blind(ScriptedLLM):
        takes_images = False

    model = Looking(llm=Blind(lambda request: call("pay", coins=len(request.messages[-1].images) + 1)), rng=1)
    model.run_for(2)
    assert model.coins == 4
    assert [record.getMessage()[:28] for record in caplog.records] == ["ScriptedLLM takes no images;"]


@pytest.mark.parametrize(("source", "fault"), [(b"BM6", "is no PNG"), ("nowhere.png", "cannot be read")])
def test_what_is_no_image_is_refused(source, fault) -> None:
    with pytest.raises(ConfigError, match=fault):
        Image(source)
