"""Outputs of a run: tables and graphs for other programs, and reports for people."""

from mesa_llm.reports.deeds import Deed, DeedTables, deeds_of
from mesa_llm.reports.export import export, network_of, tables_of
from mesa_llm.reports.findings import report_of
from mesa_llm.reports.report import Report, written_by

__all__ = ["Deed", "DeedTables", "Report", "deeds_of", "export", "network_of", "report_of", "tables_of", "written_by"]
