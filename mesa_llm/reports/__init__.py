"""Outputs of a run: tables and graphs for other programs, and reports for people."""

from mesa_llm.reports.action_log import ActionTables, Deed, actions_of
from mesa_llm.reports.export import export, network_of, tables_of
from mesa_llm.reports.findings import report_of
from mesa_llm.reports.report import Report, written_by

__all__ = [
    "ActionTables",
    "Deed",
    "Report",
    "actions_of",
    "export",
    "network_of",
    "report_of",
    "tables_of",
    "written_by",
]
