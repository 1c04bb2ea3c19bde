"""Meetings: characters, relationships, situations and pairings, ours or Sotopia's."""

from __future__ import annotations

import importlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mesa_llm import ConfigError
from mesa_llm.questionnaire.originals import options_for_file
from mesa_llm.tables import numbered_lines, read_text
from mesa_llm.text import one_line
from mesa_llm.tools.tool import describe
from mesa_llm_models.discussion.world.text import display_name

Relation = Literal["stranger", "know_by_name", "acquaintance", "friend", "romantic", "family"]
"""Familiarity of two people; in the original files, 0 to 5 in this order."""

RELATIONS: tuple[Relation, ...] = get_args(Relation)

Subset = Literal["all", "hard", "cooperative", "competitive"]
"""Situations to play."""

HARD: Mapping[str, int] = {
    "01H7VFHNV13MHN97GAH73E3KM8": 1,
    "01H7VFHN5WVC5HKKVBHZBA553R": 1,
    "01H7VFHN9W0WAFZCBT09PKJJNK": 1,
    "01H7VFHPDZVVCDZR3AARA547CY": 1,
    "01H7VFHPQQQY6H4DNC6NBQ8XTG": 2,
    "01H7VFHN7WJK7VWVRZZTQ6DX9T": 1,
    "01H7VFHPS5WJW2694R1MNC8JFY": 2,
    "01H7VFHNN7XTR99319DS8KZCQM": 2,
    "01H7VFHQ11NAMZS4A2RDGDB01V": 2,
    "01H7VFHPSWGDGEYRP63H2DJKV0": 2,
    "01H7VFHNF4G18PC9JHGRC8A1R6": 1,
    "01H7VFHNNYH3W0VRWVY178K2TK": 1,
    "01H7VFHP8AN5643B0NR0NP00VE": 1,
    "01H7VFHN7A1ZX5KSMT2YN9RXC4": 2,
}
"""Id of a situation in the hard subset → published number of tested seats; where it is one, the files do not say
which.
"""

RAW = "https://raw.githubusercontent.com/sotopia-lab/sotopia-space"

ORIGINAL: Mapping[str, tuple[str, str]] = {
    "agent_profiles.jsonl": (
        "73f66ab30ace803198fee9d455826d4f68e949ff",
        "1f2f74c07fd9105242c7f2a951d5378f52cd03a6df113f6020edb90d31202f1b",
    ),
    "environment_profiles.jsonl": (
        "0c22348b475f2f0efcfcdad360e0710ca48d1636",
        "b75de0c5b1b951ebeb66eb223ab3eec996caa890263a0bcd48ce2d9f4ce3e109",
    ),
    "relationship_profiles.jsonl": (
        "73f66ab30ace803198fee9d455826d4f68e949ff",
        "33cd50cc1fbe93b8b7010ce5047e767e3a1ead421e791fee2bb1b9b2073327a2",
    ),
    "env_agent_combo_storages.jsonl": (
        "cbb682e5480aec278e2fbf19f89770cce6d9518b",
        "46d5858322e8c8266c4aabc45e3ca5a6d8f91df0fc6f167b10adb5b1477a4815",
    ),
}
"""Original file → commit to download it from, and its SHA-256."""

FOLDERS: Mapping[str, str] = {
    "agent_profiles.jsonl": "AgentProfile",
    "environment_profiles.jsonl": "EnvironmentProfile",
    "relationship_profiles.jsonl": "RelationshipProfile",
    "env_agent_combo_storages.jsonl": "EnvAgentComboStorage",
}
"""Original file → folder in Sotopia's own storage with the same entries, one file each."""

AGES = re.compile(r"\((\d+), *(\d+)\)")
"""Minimum and maximum age of a seat in a constraint."""

TAG = re.compile(r"<([A-Za-z_]\w*)[\s>]")
"""Start of a tag in a text, with its name."""


def _stripped(value: Any) -> Any:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [str(part).strip() for part in value] if isinstance(value, list) else value or ()


def _relation(value: Any) -> Any:
    text = str(value).strip()
    return RELATIONS[int(text)] if text.isdecimal() and int(text) < len(RELATIONS) else value


Words = Annotated[tuple[str, ...], BeforeValidator(_stripped)]

RelationField = Annotated[Relation, BeforeValidator(_relation)]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)


class CharacterProfile(_Entry):
    """A character that an agent can play."""

    character_id: str = Field(validation_alias=AliasChoices("agent_id", "character_id", "pk"))
    """Id of the character."""

    first_name: str
    """First name."""

    last_name: str = ""
    """Last name."""

    age: int = Field(ge=0, le=150)
    """Age in years."""

    occupation: str = ""
    """Occupation, in words."""

    gender: str = ""
    """`Man`, `Woman` or `Nonbinary`."""

    pronouns: str = Field("", validation_alias=AliasChoices("pronouns", "gender_pronoun"))
    """Pronouns, such as `She/her`."""

    public_info: str = ""
    """Public information, visible to acquaintances."""

    personality: str = Field("", validation_alias=AliasChoices("personality", "personality_and_values"))
    """Personality and values, in words, visible to friends."""

    secret: str = ""
    """Secret, visible only to the character itself and the judge."""

    big_five: str = ""
    """Big Five traits; like the fields below, not shown."""

    moral_values: Words = ()
    """Moral values."""

    personal_values: Words = Field((), validation_alias=AliasChoices("personal_values", "schwartz_personal_values"))
    """Personal values, after Schwartz."""

    decision_style: str = Field("", validation_alias=AliasChoices("decision_style", "decision_making_style"))
    """Style of making decisions."""

    mbti: str = ""
    """Myers–Briggs type."""

    @property
    def name(self) -> str:
        """First and last name."""
        return " ".join(filter(None, (self.first_name.strip(), self.last_name.strip())))


class Situation(_Entry):
    """A scenario with a private goal for each seat; Sotopia calls it an environment."""

    situation_id: str = Field(validation_alias=AliasChoices("env_id", "situation_id", "pk"))
    """Id of the situation."""

    codename: str = ""
    """Short name."""

    source: str = ""
    """Source data set, according to its file."""

    text: str = Field(validation_alias=AliasChoices("scenario", "text"))
    """Scene: where the characters are, and what has happened."""

    goals: tuple[str, ...] = Field(validation_alias=AliasChoices("agent_goals", "goals"), min_length=2)
    """Private goal of each seat, with tags. An empty one is written by the seat's language model."""

    relation: RelationField = Field(validation_alias=AliasChoices("relationship", "relation"))
    """Familiarity of the characters."""

    age_constraint: str = ""
    """Ages of each seat, such as `[(18, 70), (18, 70)]`."""

    occupation_constraint: str = ""
    """Occupations of each seat, such as `[actor, actor]`; `nan` for any."""

    kind: Literal["", "cooperative", "competitive"] = ""
    """Whether the goals agree or conflict; empty if unknown."""

    is_hard: bool = False
    """Whether it belongs to the hard subset."""


class Tie(_Entry):
    """Relationship of two characters."""

    character_ids: tuple[str, ...] = Field(min_length=2, max_length=2)
    """Ids of the two characters."""

    relation: RelationField = Field(validation_alias=AliasChoices("relationship", "relation"))
    """Familiarity of the characters."""

    story: str = Field("", validation_alias=AliasChoices("story", "background_story"))
    """How they met; not shown."""


class Pairing(_Entry):
    """Characters meeting in a situation, by seat."""

    situation_id: str = Field(validation_alias=AliasChoices("env_id", "situation_id"))
    """The situation."""

    character_ids: tuple[str, ...] = Field(validation_alias=AliasChoices("agent_ids", "character_ids"), min_length=2)
    """Id of the character in each seat."""


E = TypeVar("E", bound=_Entry)


@dataclass(frozen=True)
class Scenes:
    """Material for episodes."""

    characters: Mapping[str, CharacterProfile]
    """Id → character."""

    situations: Mapping[str, Situation]
    """Id → situation."""

    ties: tuple[Tie, ...]
    """Relationships."""

    pairings: tuple[Pairing, ...]
    """Characters and their situations."""

    def pairings_of(self, subset: Subset = "all") -> list[Pairing]:
        """Return the pairings of a subset, each situation once before any is repeated.

        Args:
            subset: Situations to include.
        """
        by_situation: dict[str, list[Pairing]] = {}
        for one in self.pairings:
            if _is_in(self.situations[one.situation_id], subset):
                by_situation.setdefault(one.situation_id, []).append(one)
        rounds = max(map(len, by_situation.values()), default=0)
        return [ones[turn] for turn in range(rounds) for ones in by_situation.values() if turn < len(ones)]

    def report(self) -> dict[str, Any]:
        """Count what was loaded, and its inconsistencies.

        Returns:
            Numbers of `characters`, `situations`, `ties` and `pairings`; `sources` and `relations` of the situations,
            `tie_relations`, number of pairings per situation (`pairings_each`), `tags` in texts and goals, and the
            number of pairings whose characters' tie matches the situation (`tied`) or not (`not_tied`; of two ties
            between the same characters, the last counts), or whose ages it does not allow (`wrong_age`).
        """
        situations = self.situations.values()
        ties = {frozenset(one.character_ids): one.relation for one in self.ties}
        tied = Counter(
            ties.get(frozenset(one.character_ids)) == self.situations[one.situation_id].relation
            for one in self.pairings
        )
        each = Counter(Counter(one.situation_id for one in self.pairings).values())
        texts = [text for one in situations for text in (one.text, *one.goals)]
        return {
            "characters": len(self.characters),
            "situations": len(self.situations),
            "ties": len(self.ties),
            "pairings": len(self.pairings),
            "sources": dict(Counter(one.source for one in situations)),
            "relations": dict(Counter(one.relation for one in situations)),
            "tie_relations": dict(Counter(one.relation for one in self.ties)),
            "pairings_each": dict(each),
            "tags": dict(Counter(tag for text in texts for tag in TAG.findall(text))),
            "tied": tied[True],
            "not_tied": tied[False],
            "wrong_age": sum(map(self._has_wrong_age, self.pairings)),
        }

    def _has_wrong_age(self, pairing: Pairing) -> bool:
        ages = [self.characters[one].age for one in pairing.character_ids]
        allowed = AGES.findall(self.situations[pairing.situation_id].age_constraint)
        return any(not int(low) <= age <= int(high) for age, (low, high) in zip(ages, allowed, strict=False))


def _is_in(situation: Situation, subset: Subset) -> bool:
    return subset == "all" or (situation.is_hard if subset == "hard" else situation.kind == subset)


# -- loading


def load_scenes(items: str = "own") -> Scenes:
    """Load characters, ties, situations and pairings.

    Args:
        items: `own` for ours, `original` for Sotopia's (downloaded at first use), or a folder with Sotopia's files.

    Raises:
        ConfigError: If something cannot be read, or the parts are inconsistent. The message names file and line.
    """
    if items == "own":
        own = resources.files(__package__).joinpath("data")
        entries = {name: json.loads(own.joinpath(f"{name}.json").read_text(encoding="utf-8")) for name in _OWN}
        parts = {name: [kind.model_validate(entry) for entry in entries[name]] for name, kind in _OWN.items()}
        return _fitted(parts["characters"], parts["situations"], parts["ties"], [])
    folder = fetch_original() if items == "original" else Path(items)
    if not folder.is_dir():
        raise ConfigError(f"items={items!r} is not a folder; use one with {', '.join(ORIGINAL)}, or items='own'")
    of_characters, of_situations, of_ties, of_pairings = ORIGINAL
    return _fitted(
        list(_entries(folder, of_characters, CharacterProfile)),
        [_labelled(one) for one in _entries(folder, of_situations, Situation)],
        list(_entries(folder, of_ties, Tie)),
        list(_entries(folder, of_pairings, Pairing)),
    )


_OWN: dict[str, type[_Entry]] = {"characters": CharacterProfile, "situations": Situation, "ties": Tie}


def _labelled(situation: Situation) -> Situation:
    """Set the kind of an original situation, and whether it is hard. In other files, both are unchanged."""
    kinds = {"mutual": "cooperative", "craigslist": "competitive"}
    kind = next((kind for part, kind in kinds.items() if part in situation.codename), situation.kind)
    return situation.model_copy(update={"kind": kind, "is_hard": situation.is_hard or situation.situation_id in HARD})


def _fitted(
    characters: Sequence[Any], situations: Sequence[Any], ties: Sequence[Any], pairings: Sequence[Any]
) -> Scenes:
    """Assemble the parts. Without pairings, each situation of two is played by all ties with its relation.

    Raises:
        ConfigError: If an id is repeated or unknown, a pairing does not fit its goals, a name is blank or the same as
            the other's, or there are no meetings.
    """
    people = {one.character_id: one for one in characters}
    scenes = {one.situation_id: one for one in situations}
    for name, ids in (("character", characters), ("situation", situations)):
        counts = Counter(getattr(one, f"{name}_id") for one in ids)
        if twice := [one for one, count in counts.items() if count > 1]:
            raise ConfigError(f"{name} {twice[0]!r} appears twice; use unique ids")
    pairings = pairings or [
        Pairing(situation_id=scene.situation_id, character_ids=tie.character_ids[:: -1 if index % 2 else 1])
        for scene in situations
        for index, tie in enumerate(one for one in ties if one.relation == scene.relation)
        if len(scene.goals) == 2
    ]
    for pairing in pairings:
        _require_fit(pairing, people, scenes)
    if not pairings:
        raise ConfigError("there are no meetings: no pairings, and no ties that match a situation")
    return Scenes(people, scenes, tuple(ties), tuple(pairings))


def _require_fit(pairing: Pairing, people: Mapping[str, CharacterProfile], places: Mapping[str, Situation]) -> None:
    where = f"the pairing of {', '.join(pairing.character_ids)} in {pairing.situation_id}"
    if pairing.situation_id not in places:
        raise ConfigError(f"{where}: there is no such situation")
    if lacking := [one for one in pairing.character_ids if one not in people]:
        raise ConfigError(f"{where}: there is no character {lacking[0]!r}")
    n_goals = len(places[pairing.situation_id].goals)
    if len(pairing.character_ids) != n_goals:
        raise ConfigError(f"{where}: {len(pairing.character_ids)} characters for {n_goals} goals; give one for each")
    names = [display_name(people[one].name) for one in pairing.character_ids]
    if "" in names:
        raise ConfigError(f"{where}: {pairing.character_ids[names.index('')]!r} has no name; give it a first_name")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"{where}: two people are called {twice[0]!r}; names must be unique")


def _entries(folder: Path, name: str, kind: type[E]) -> Iterator[E]:
    """Read the entries of one kind: one line or one file each. Pairings and ties are optional.

    Raises:
        ConfigError: If other entries are missing, or one cannot be read.
    """
    path, inner = folder / name, folder / FOLDERS[name]
    if path.is_file():
        entries = [(f"{path}:{number}", line) for number, line in numbered_lines(path)]
    elif inner.is_dir():
        entries = [(str(file), read_text(file)) for file in sorted(inner.glob("*.json"))]
    elif issubclass(kind, Pairing | Tie):
        return
    else:
        raise ConfigError(f"{folder} has neither {name} nor a folder {FOLDERS[name]}; one of them is needed")
    for where, text in entries:
        try:
            entry: Any = json.loads(text)
            yield kind.model_validate(_tied(entry, where) if issubclass(kind, Tie) else entry)
        except ValidationError as error:
            raise ConfigError(f"{where}: {describe(error)}") from None
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{where}: not a JSON object ({one_line(str(error), 120)})") from None


TIED = (("agent1_id", "agent2_id"), ("agent_1_id", "agent_2_id"))
"""Keys of the two characters in a relationship, in the lines of a file and in Sotopia's own storage."""


def _tied(entry: Any, where: str) -> Any:
    """Combine the two ids of an original relationship in one field.

    Raises:
        ConfigError: If one is missing, or neither text nor number.
    """
    if not isinstance(entry, dict) or "character_ids" in entry:
        return entry
    keys = max(TIED, key=lambda pair: sum(key in entry for key in pair))
    for key in keys:
        if key not in entry:
            raise ConfigError(f"{where}: {key}: field required")
        if not isinstance(entry[key], str | int):
            raise ConfigError(f"{where}: {key}: input should be a valid string, got {entry[key]!r:.80}")
    return {"character_ids": [entry[key] for key in keys], **entry}


def fetch_original() -> Path:
    """Download the original files once, check their digests, and store them in the user's cache.

    Raises:
        ConfigError: If pooch is not installed, or a file cannot be downloaded.
    """
    files = f"{', '.join(ORIGINAL)} from {RAW} (folder profiles)"
    advice = f"download {files} yourself, and give their folder as {options_for_file('items')}"
    try:
        pooch = importlib.import_module("pooch")
    except ImportError:
        raise ConfigError(f"items='original' needs pooch: `pip install pooch`, or {advice}") from None
    folder = Path(pooch.os_cache("mesa_llm"), "sotopia")
    try:
        for name, (commit, digest) in ORIGINAL.items():
            pooch.retrieve(f"{RAW}/{commit}/profiles/{name}", f"sha256:{digest}", fname=name, path=folder)
    except (OSError, ValueError) as error:
        reason = one_line(str(error), 200)
        raise ConfigError(f"the original files cannot be downloaded ({reason}); {advice}") from error
    return folder
