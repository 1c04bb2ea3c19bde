"""Rewordings of a model's instructions, written once by a language model, and kept to be read.

    folders = write_rewordings(DilemmaModel, setting, "gpt-5", folder, n=2)

Each is refused unless every number and every name of the original stands in it, and no other number does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from mesa_llm.config import Settings
from mesa_llm.engine.access import Access
from mesa_llm.engine.presentation import reworded_name
from mesa_llm.errors import ConfigError, MesaLLMError
from mesa_llm.experiments.audits.dimensions import Setting, instructions_of
from mesa_llm.model.model import LLMModel
from mesa_llm.prompts import LIBRARY_PROMPTS
from mesa_llm.records import Decision

MAX_TRIES = 4
"""Maximum number of times that one rewording is asked for."""

PURPOSE = "rewording"
"""Purpose of the requests."""

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_IN_QUOTES = re.compile(r"[“\"]([^”\"\n]{1,60})[”\"]")
_NUMBER_WORDS = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twice|half|none|nobody|never)\b"
    r"|\bonce (?:a|an|per|each|every)\b"
    r"|(?<!\bthe )(?<!\beach )(?<!\bevery )(?<!\bthis )(?<!\bthat )(?<!\bany )(?<!\bwhich )\bone\b"
    r"(?! of\b| another\b| after\b| by\b)"
)
"""Words for numbers; "one" where it counts, and not where it stands for a noun as in "each one"."""

_NAME = re.compile(r"(?<=[^\s.!?:“\"(•*-] )[A-Z][^\W\d_]+")
"""Words with a capital letter that do not begin a sentence, a line, or a quotation."""


def write_rewordings(
    model: type[LLMModel],
    settings: Sequence[Setting],
    llm: str,
    folder: str | Path,
    *,
    n: int = 2,
    temperature: float = 0.8,
    **access: Any,
) -> list[Path]:
    """Have a language model say the instructions of a model in other words, and keep them in a folder.

    What is in the folder already is not asked for again. Read the files before you use them: the original text stands
    beside each, in a file that ends in `.original.txt`.

    Args:
        model: The model.
        settings: The settings whose instructions are reworded, as those of a claim.
        llm: Language model that writes.
        folder: Folder of the rewordings, one folder each.
        n: Number of rewordings.
        temperature: Randomness of the sampling.
        **access: Endpoints, limits and budget, see `Access`.

    Returns:
        Folders of the rewordings, for `audit(wordings=…)`.

    Raises:
        ConfigError: If the model has no instructions.
        MesaLLMError: If no rewording keeps all numbers and names.
    """
    texts = list(dict.fromkeys(text for setting in settings for text in instructions_of(model, setting)))
    if not texts:
        raise ConfigError(f"{model.__name__} has no instructions to say in other words")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    folders = [place / f"rewording-{number}" for number in range(1, n + 1)]
    missing = [(one, text) for one in folders for text in texts if not (one / reworded_name(text)).is_file()]
    if not missing:
        return folders
    arguments = {**settings[0].parameters, "llm": "random", "rng": 1, "log": place / "rewordings.sqlite"}
    with closing(Access(**access)) as shared, closing(model(**arguments, access=shared)) as host:
        for one, text in missing:
            one.mkdir(exist_ok=True)
            number = folders.index(one)
            (one / f"{Path(reworded_name(text)).stem}.original.txt").write_text(text + "\n", encoding="utf-8")
            written = _reworded(host, llm, text, Settings(temperature=temperature, extra={}), number)
            (one / reworded_name(text)).write_text(written + "\n", encoding="utf-8")
    return folders


def _reworded(host: LLMModel, llm: str, text: str, settings: Settings, number: int) -> str:
    """Ask for a rewording until one keeps all facts.

    Raises:
        MesaLLMError: If none does.
    """
    lost = ""
    for _ in range(MAX_TRIES):
        prompt = LIBRARY_PROMPTS.fill("audit_reword.md", text=text)
        if number or lost:  # equal prompts would be answered alike by a language model at temperature 0
            prompt += "\n" * (number + 1)
        (decided,) = host.consult(llm, [f"{prompt}{lost}"], purpose=PURPOSE, settings=settings)
        if not isinstance(decided, Decision):
            lost = ""
            continue
        written = str(decided.answer).strip()
        difference = facts_lost(text, written)
        if not difference and written != text.strip():
            return written
        lost = f"\n\nThis is missing or new in your last version: {', '.join(difference)}." if difference else ""
    raise MesaLLMError(
        f"{llm} has not said the instructions in other words without losing {lost.strip() or 'anything'}; write them "
        "yourself into prompts/variants/NAME/instructions.md, or let another language model do it (--rewrite)"
    )


def facts_lost(original: str, other: str) -> list[str]:
    """Return the facts that stand in one of two texts alone.

    This is a check of words, not of meaning: numbers in digits or words, names, and quotations. Rules, conditions and
    negations may be lost without being noticed: read what is written.

    Args:
        original: A text.
        other: The same in other words or in another form.
    """
    first, second = facts_in(original), facts_in(other)
    names = [name for name in first["names"] if name.lower() not in other.lower()]
    names += [name for name in second["names"] if name.lower() not in original.lower()]
    others = [fact for kind in ("numbers", "quoted") for fact in first[kind] if fact not in second[kind]]
    others += [fact for kind in ("numbers", "quoted") for fact in second[kind] if fact not in first[kind]]
    return list(dict.fromkeys([*names, *others]))


def facts_in(text: str) -> Mapping[str, Sequence[str]]:
    """Return the facts of a text, each once.

    Args:
        text: The text.

    Returns:
        `numbers`: those in digits, and words for numbers; `quoted`: what stands in quotation marks, up to 60
        characters; `names`: words with a capital letter inside a sentence.
    """
    words = text.lower().replace("no one", "nobody")
    return {
        "numbers": list(dict.fromkeys([*_NUMBER.findall(text), *_NUMBER_WORDS.findall(words)])),
        "quoted": list(dict.fromkeys(_IN_QUOTES.findall(text))),
        "names": list(dict.fromkeys(_NAME.findall(text))),
    }
