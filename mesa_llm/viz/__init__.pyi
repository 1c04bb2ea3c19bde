"""The public names, and the module that defines each."""

from .components.controls import CostMeter as CostMeter
from .components.human import HumanPanel as HumanPanel
from .components.inspector import AgentInspector as AgentInspector
from .components.inspector import InterviewForm as InterviewForm
from .components.markup import Clickable as Clickable
from .components.markup import Markup as Markup
from .components.markup import place_style as place_style
from .components.picture import Picture as Picture
from .components.plots import Measures as Measures
from .components.plots import drawn_by as drawn_by
from .components.space import Space as Space
from .components.space import network_plot as network_plot
from .components.tables import ActionTable as ActionTable
from .components.tables import EventLog as EventLog
from .components.tables import GivenAnswers as GivenAnswers
from .components.tables import MissingAnswers as MissingAnswers
from .components.tables import table_of as table_of
from .render import Figure as Figure
from .render.figures import finish as finish
from .render.markup import markup as markup
from .render.trace import Row as Row
from .server.page import LLMPage as LLMPage
from .session.runner import Runner as Runner
from .session.rw_lock import steady as steady
