"""Populations: personas from files, tables or distributions; follow graphs; hours of activity."""

from mesa_llm.population.activity import ActivityForm, activity_table, hourly_activity
from mesa_llm.population.columns import invented
from mesa_llm.population.drawn import drawn_personas
from mesa_llm.population.edges import Follows, read_edges
from mesa_llm.population.files import Refusal, Users, from_file, from_oasis, read_activity, read_users
from mesa_llm.population.follows import (
    core_ordinary_follows,
    follow_matrix,
    preferential_follows,
    random_follows,
    watts_strogatz_follows,
)
from mesa_llm.population.persona import Persona
from mesa_llm.population.tables import from_table
from mesa_llm.population.traits import DrawnPeople, draw, from_distributions

__all__ = [
    "ActivityForm",
    "DrawnPeople",
    "Follows",
    "Persona",
    "Refusal",
    "Users",
    "activity_table",
    "core_ordinary_follows",
    "draw",
    "drawn_personas",
    "follow_matrix",
    "from_distributions",
    "from_file",
    "from_oasis",
    "from_table",
    "hourly_activity",
    "invented",
    "preferential_follows",
    "random_follows",
    "read_activity",
    "read_edges",
    "read_users",
    "watts_strogatz_follows",
]
