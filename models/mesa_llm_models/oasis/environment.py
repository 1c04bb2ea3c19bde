"""OASIS's interface: make a network, and say step by step who acts, by hand or by language model.

    env = make("users.csv", platform="twitter", llm="ollama/qwen3", database="network.db", log="run.sqlite", rng=1)
    first, second, *others = env.agents
    env.step({first: ManualAction(action="create_post", arguments={"content": "Hello."})})
    env.step({second: [LLMAction(), InterviewAction("What do you think?")]} | {agent: LLMAction() for agent in others})
    env.close()

What is done is in the run log. The same program with the same log replays it, and so does the log alone.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, Unpack

from mesa_llm import (
    ConfigError,
    Decision,
    Failure,
    LLMOptions,
    ManualAction,
    Observation,
    Outcome,
    ToolCall,
    ToolError,
    Turn,
)
from mesa_llm.canonical import canonical_json
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm_models.social.agents import SocialUser
from mesa_llm_models.social.model import SocialModel, SocialScenario
from mesa_llm_models.social.world import write_oasis_database

PLATFORMS = {"twitter": "oasis_x", "reddit": "oasis_reddit"}
"""OASIS's platforms → presets of the social world."""

PLAN = "plan of step "
"""Beginning of the manifest key of a step, for what was done by whom: a list of agents with their actions."""

MANUAL = "manual"
"""Label of turns in which somebody else chooses, and who decides in them, in the run log."""

INTERVIEW = "interview"
"""Label of turns in which a user is interviewed, and the name of that action in OASIS."""

CHOSEN_BY_HAND = "Somebody else chooses what you do in this turn."
"""Observation of a user that acts by hand."""

USER_IDS = frozenset({"followee_id", "mutee_id"})
"""OASIS's names of arguments that number users, from 0."""

NAMES = {
    **dict.fromkeys(USER_IDS, "user_id"),
    "quote_content": "content",
    "report_reason": "reason",
    "group_name": "name",
    "purchase_num": "amount",
}
"""OASIS's name of an argument → the social world's."""


@dataclass(frozen=True)
class LLMAction:
    """A user decides by itself: by its language model, or by rule or chance if that is its `llm`."""


@dataclass(frozen=True)
class InterviewAction:
    """A question to a user, which neither remembers it nor acts on it."""

    prompt: str
    """The question."""


Item = ManualAction | LLMAction | InterviewAction
"""What a user can be told to do."""

Plan = list[tuple[int, list[Any]]]
"""What users do in one step, as JSON values: `unique_id` of a user, with what it does, in order."""


class DirectedUser(SocialUser):
    """A user that acts when and as it is told."""

    model: DirectedModel

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Carry out a decision, and keep what came of it for whoever directs the users."""
        results = self.model.results_of(self)
        label = "" if seen is None else seen.label
        if label == INTERVIEW:
            results.append(decision.answer if isinstance(decision, Decision) else None)
            return []
        if label != MANUAL:
            outcomes = super().act(decision, seen)
        elif isinstance(decision, Decision) and self._reads(decision):
            outcomes = [self._read(decision.actions[0])]
        else:
            outcomes = super(SocialUser, self).act(decision, seen)  # it has read no feed, which could shift a belief
        results.append(decision if isinstance(decision, Failure) else tuple(outcomes))
        return outcomes

    @property
    def _box(self) -> ToolBox:
        """Everything that users can do in its world."""
        return ToolBox.of(self, self.unique_id, self.worlds)

    def _reads(self, decision: Decision) -> bool:
        """Check whether a decision by hand is to look at something."""
        return not self._box.is_action(decision.actions[0].name)

    def _read(self, call: ToolCall) -> Outcome:
        """Look at something, by hand."""
        try:
            ok, text = True, self._box.call(call)
        except ToolError as error:
            ok, text = False, str(error)
        return Outcome(self.unique_id, call.name, call.arguments, ok, text, MANUAL)

    def by_hand(self, name: str, arguments: Mapping[str, Any], seen: Observation) -> Decision | Failure:
        """Return an action chosen by somebody else as a decision, or the reason why it is none."""
        call = ToolCall(name, arguments)
        if self._box.is_action(name):
            return self.checked(call, seen, MANUAL)
        return Decision(self.unique_id, (call,), by=MANUAL, label=seen.label)


class DirectedModel(SocialModel):
    """A social network whose users act when and as they are told; without first posts of its own.

    Attributes:
        results: `unique_id` of a user → what came of each thing it did in the last step.
    """

    user_class: ClassVar[type[SocialUser]] = DirectedUser
    scenario: SocialScenario

    def __init__(self, scenario: SocialScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Sign the users up, and read what was done in a recorded run."""
        super().__init__(scenario, **options)
        recorded = self.runlog.manifest
        self._plans: dict[str, Any] = {key: value for key, value in recorded.items() if key.startswith(PLAN)}
        self.results: dict[int, list[Any]] = {}
        self.activation = _directed

    def opening(self, users: Sequence[SocialUser]) -> list[tuple[SocialUser, str]]:
        """Return no posts: all are written by those who are told to."""
        return []

    def direct(self, plan: Plan) -> None:
        """Set what the users do in the next step, and record it.

        Raises:
            ConfigError: If the run log holds this step with something else.
        """
        key, value = f"{PLAN}{self.now}", [[agent_id, items] for agent_id, items in plan]
        if canonical_json(self._plans.get(key)) == canonical_json(value):
            return
        if self.runlog.mode == "replay" or self.runlog.holds_step(self.now):
            raise ConfigError(f"the run log holds step {self.now} with other actions; use another log= for another run")
        self._plans[key] = value
        self.runlog.note(key, value)

    def start_step(self) -> None:
        """Forget what came of the last step."""
        super().start_step()
        self.results = {}

    def results_of(self, user: SocialUser) -> list[Any]:
        """Return the list with what came of the things that a user has done in this step."""
        return self.results.setdefault(user.unique_id, [])

    def stages(self) -> list[list[Turn]]:
        """Return the turns of this step: first what users do first, together, then what they do next."""
        users = {agent.unique_id: agent for agent in self.agents}
        written = self._plans.get(f"{PLAN}{self.now}", ())
        plan = [(users[agent_id], items) for agent_id, items in written if agent_id in users]
        rounds = range(max((len(items) for _, items in plan), default=0))
        return [[_turn(user, items[index]) for user, items in plan if index < len(items)] for index in rounds]

    def decide(
        self, agents: Sequence[Any], observations: Sequence[Observation] | None = None
    ) -> list[Decision | Failure]:
        """Let users decide by themselves, unless they act by hand or are interviewed in this turn."""
        seen = [agent.observe() for agent in agents] if observations is None else observations
        by_themselves = [index for index, one in enumerate(seen) if one.label not in (MANUAL, INTERVIEW)]
        decided = super().decide([agents[index] for index in by_themselves], [seen[index] for index in by_themselves])
        results: dict[int, Decision | Failure] = dict(zip(by_themselves, decided, strict=True))
        for index, (agent, one) in enumerate(zip(agents, seen, strict=True)):
            if one.label == MANUAL:
                results[index] = self._by_hand(agent, one)
        results |= self._answers(
            [(index, agents[index], one) for index, one in enumerate(seen) if one.label == INTERVIEW]
        )
        return [results[index] for index in range(len(seen))]

    def _by_hand(self, user: Any, seen: Observation) -> Decision | Failure:
        """Record what somebody else has chosen for a user."""
        decision = user.by_hand(seen.facts["action"], seen.facts["arguments"], seen)
        self.runlog.add(decision, self.now)
        if isinstance(decision, Failure):
            self.engine.count_failure("decide")
        return decision

    def _answers(self, turns: Sequence[tuple[int, Any, Observation]]) -> dict[int, Decision | Failure]:
        """Interview users: all who are asked the same at once. Return their answers by index of the turn."""
        answers: dict[int, Decision | Failure] = {}
        for prompt in dict.fromkeys(seen.text for _, _, seen in turns):
            same = [(index, user) for index, user, seen in turns if seen.text == prompt]
            for (index, user), answer in zip(same, self.interviews([user for _, user in same], prompt), strict=True):
                answers[index] = Decision(user.unique_id, answer=answer, by=INTERVIEW, label=INTERVIEW)
        return answers


def _directed(model: Any) -> list[list[Turn]]:
    """Activate the users that have been told to do something."""
    return model.stages()


def _turn(user: SocialUser, item: Any) -> Turn:
    """Return a user's turn: an observation of its own, unless it decides by itself."""
    match item:
        case {"action": _}:
            return Turn(user, Observation(CHOSEN_BY_HAND, label=MANUAL, facts=item))
        case {"interview": prompt}:
            return Turn(user, Observation(prompt, answer=str, label=INTERVIEW))
        case _:
            return Turn(user)


class _Awaitable:
    """Something that is done already, so that programs written for OASIS may await it."""

    def __await__(self) -> Generator[Any, None, Any]:
        """Return at once."""
        yield from ()
        return self


class StepResults(_Awaitable, dict[SocialUser, list[Any]]):
    """What came of a step: by user, one entry for each thing it did, in order.

    An action by hand and a decision have their outcomes, as a tuple; a decision or an action that was none is a
    `Failure`; an interview has the answer, or None if there was none.
    """


class OasisEnv:
    """A social network that is stepped as OASIS's environment is; see `make`.

    Attributes:
        model: The model of the network.
        agents: The users; the index is OASIS's `agent_id`, one less than Mesa's `unique_id`.
    """

    def __init__(self, model: DirectedModel, database: str | Path | None = None, start: datetime | None = None) -> None:
        """Store the model.

        Args:
            model: The model.
            database: SQLite file to write in `close`, in OASIS's form; None for none.
            start: Time of step 0 in that file; see `write_oasis_database`.
        """
        self.model = model
        self.agents: list[SocialUser] = sorted(model.agents, key=lambda agent: agent.unique_id)
        self._database, self._start = database, start

    def reset(self) -> _Awaitable:
        """Do nothing: users are signed up when the network is made. OASIS needs it before the first step.

        Raises:
            ConfigError: If steps have been made; a network cannot begin again.
        """
        if self.model.time:
            raise ConfigError(f"{int(self.model.time)} steps have been made; make() a new environment to begin again")
        return _Awaitable()

    def step(self, actions: Mapping[SocialUser, Item | Sequence[Item]]) -> StepResults:
        """Let users act, and end the step.

        All users decide on what they see at the beginning, and act in the order of the mapping. If some have a list,
        they do the first thing on it together, then those with a second one do that, and so on.

        Args:
            actions: What each user does: one thing, or a list.

        Returns:
            What came of it. It may be awaited, which changes nothing.

        Raises:
            ConfigError: If somebody is no user, is told something else, or has no such action; or the run log holds
                this step with other actions. Nothing is done then.
        """
        plan: Plan = []
        for user, told in actions.items():
            if user not in self.model.agents:
                raise ConfigError(f"{user!r:.80} is not a user of this network; use those of env.agents")
            items: list[Any] = list(told) if isinstance(told, list | tuple) else [told]
            plan.append((user.unique_id, [self._written(user, item) for item in items]))
        self.model.direct(plan)
        self.model.step()
        return StepResults({user: self.model.results.get(user.unique_id, []) for user in actions})

    def _written(self, user: SocialUser, item: Any) -> Any:
        """Return what a user is told as JSON values, with the social world's names and numbers."""
        match item:
            case ManualAction(agent=who) if who not in ("", user.unique_id, user.config.name):
                raise ConfigError(f"{user!r} is told what {who} is to do; leave out agent=")
            case LLMAction():
                return "llm"
            case InterviewAction(prompt=prompt) if prompt.strip():
                return {"interview": prompt}
            case ManualAction(action="interview", arguments={"prompt": str(prompt)}) if prompt.strip():
                return {"interview": prompt}
            case ManualAction(action=name, arguments=arguments) if name in self.model.world.settings.actions:
                return {"action": name, "arguments": as_ours(arguments)}
            case ManualAction(action=name):
                known = ", ".join(self.model.world.settings.actions)
                raise ConfigError(f"users have no action {name!r}; they have {known}, and interview (actions=)")
            case _:
                wanted = (
                    "ManualAction(action=…, arguments={…}), LLMAction(), InterviewAction(prompt), or a list of them"
                )
                raise ConfigError(f"a user is told {item!r:.80}; wanted {wanted}")

    def write_database(self, path: str | Path) -> None:
        """Write the network so far as OASIS's database; see `write_oasis_database`."""
        write_oasis_database(self.model.world, path, self._start)

    def close(self) -> _Awaitable:
        """Write the database, if there is to be one, and close the run log and all connections."""
        if self._database is not None:
            self.write_database(self._database)
        self.model.close()
        return _Awaitable()


def as_ours(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return OASIS's arguments of an action under the names of the social world, with users numbered from 1."""
    return {
        NAMES.get(name, name): value + 1 if name in USER_IDS and isinstance(value, int) else value
        for name, value in arguments.items()
    }


def make(
    users: str | Path | int = 20,
    platform: Literal["twitter", "reddit"] = "twitter",
    database: str | Path | None = None,
    *,
    start: datetime | None = None,
    **parameters: Any,
) -> OasisEnv:
    """Make a social network to be stepped, as `oasis.make` does.

    Args:
        users: File with the users, in one of OASIS's formats or a table; or a number of invented ones.
        platform: OASIS's platform: actions and feed are those of its preset, unless `actions` or `feed` is given.
        database: SQLite file to write in `close`, in OASIS's form; None for none.
        start: Time of step 0 in that file; see `write_oasis_database`.
        **parameters: Parameters of the social model, such as `feed`, and options of all models, such as `llm`, `log`,
            `replay`, `rng`, `concurrency` (OASIS's `semaphore`). `follows` is 0 unless given.

    Raises:
        ConfigError: If there is no such platform, or a parameter is unknown or invalid.
    """
    if platform not in PLATFORMS:
        raise ConfigError(f"there is no platform {platform!r}; choose one of {', '.join(PLATFORMS)}")
    who: dict[str, Any] = {"n_agents": users} if isinstance(users, int) else {"users": str(users)}
    model = DirectedModel(**{"preset": PLATFORMS[platform], "follows": 0, **who, **parameters})
    return OasisEnv(model, database, start)
