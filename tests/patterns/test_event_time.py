"""An epidemic in event time: a thousand people who fall ill at times of their own, and of whom few are asked."""

from __future__ import annotations

from typing import Any

from mesa_llm import LLMAgent, LLMModel, Observation, ScriptedLLM, ToolCall, action

MAX_ASKED = 40
"""Maximum number of people whose language model is asked in a day; the others follow their rule."""


class Person(LLMAgent):
    """Falls ill at a time of its own, then goes out or stays at home, and infects whom it meets outside."""

    def __init__(self, model: Any, **components: Any) -> None:
        super().__init__(model, **components)
        self.state, self.is_out = "healthy", True

    def observe(self) -> Observation:
        return Observation(f"You are {self.state}. Of {len(self.model.agents)} people, {self.model.n_ill} are ill.")

    def fall_ill(self) -> None:
        """Begin to be ill, decide today what to do, and recover after some days."""
        if self.state != "healthy":
            return
        self.state = "ill"
        self.model.n_ill += 1
        self.llm = None if self.model.n_asked < MAX_ASKED else "rule"
        self.model.n_asked += self.llm != "rule"
        self.wake()
        self.model.schedule_event(self.recover, after=self.random.uniform(2, 4))

    def recover(self) -> None:
        self.state = "well again"
        self.model.n_ill -= 1

    @action
    def go_out(self) -> str:
        """Go out, and meet two people."""
        for other in self.random.sample(self.model.people, 2):
            self.model.schedule_event(other.fall_ill, after=self.random.expovariate(1))
        return "You met two people."

    @action
    def stay_home(self) -> str:
        """Stay at home until you are well."""
        self.is_out = False
        return "You stay at home."

    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("go_out")


class Town(LLMModel):
    """Only those who fall ill decide, together at the end of their day."""

    def __init__(self, n_agents: int = 1000, **options: Any) -> None:
        super().__init__(activation=lambda model: [], **options)
        self.n_ill = self.n_asked = 0
        self.asked_by_day: list[int] = []
        self.people = list(Person.create_agents(self, n_agents, memory="none"))
        for person in self.people[:60]:
            self.schedule_event(person.fall_ill, at=self.random.random())

    def start_interval(self) -> None:
        """Begin a day, before anybody falls ill in it."""
        self.n_asked = 0

    def end_step(self) -> None:
        self.asked_by_day.append(self.n_asked)


def test_epidemic_in_event_time_asks_a_bounded_number_a_day_and_replays(tmp_path) -> None:
    log = tmp_path / "town.sqlite"
    cautious = ScriptedLLM(lambda request: ToolCall("stay_home"))
    town = Town(llm=cautious, log=log, rng=1)
    town.run_for(6)
    assert max(town.asked_by_day) == MAX_ASKED
    assert town.usage.calls == sum(town.asked_by_day)
    town.close()
    again = Town(llm="ScriptedLLM", log=log, rng=1, replay=True)
    again.run_for(6)
    assert (again.runlog.digest, again.n_ill) == (town.runlog.digest, town.n_ill)
    by_rule = Town(rng=1)
    by_rule.run_for(6)
    assert sum(person.state != "healthy" for person in by_rule.people) > sum(
        person.state != "healthy" for person in town.people
    )
