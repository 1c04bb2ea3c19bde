"""What comes of a run: tables and graphs for other programs, and reports for people."""

from mesa_llm.reports.deeds import Deed, DeedTables, deeds_of
from mesa_llm.reports.export import export, network_of, tables_of

__all__ = ["Deed", "DeedTables", "deeds_of", "export", "network_of", "tables_of"]
