"""The public names, and the module that defines each."""

from .chart import Chart as Chart
from .chart import ChartSeries as ChartSeries
from .chart import limits_of as limits_of
from .chart import literal as literal
from .chart import marker as marker
from .palette import COLOURS as COLOURS
from .palette import GREY as GREY
from .palette import INK as INK
from .palette import LIGHT as LIGHT
from .palette import PALE as PALE
from .palette import dark_of as dark_of
from .palette import shade_of as shade_of
from .panels import Drawn as Drawn
from .panels import Panels as Panels
from .panels import data_url as data_url
from .scenes import LegendEntry as LegendEntry
from .scenes import SceneAgent as SceneAgent
from .scenes import SpaceScene as SpaceScene
from .style import DOLLARS as DOLLARS
from .style import Figure as Figure
from .style import frame as frame
from .style import headline as headline
from .style import legend_below as legend_below
from .style import picture_of as picture_of
from .style import sheet as sheet
