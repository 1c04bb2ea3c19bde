"""Outputs of a run: tables and graphs for other programs, and reports for people."""

from mesa_llm.reports.action_log import ActionTables, LoggedAction, actions_of
from mesa_llm.reports.bundle import Bundle, BundleManifest, bundle_of, unpack
from mesa_llm.reports.export import export, network_of, tables_of
from mesa_llm.reports.findings import report_of
from mesa_llm.reports.odd import OddDocument, OddPart, odd_of
from mesa_llm.reports.private_data import Disclosure
from mesa_llm.reports.report import Report, written_by

__all__ = [
    "ActionTables",
    "Bundle",
    "BundleManifest",
    "Disclosure",
    "LoggedAction",
    "OddDocument",
    "OddPart",
    "Report",
    "actions_of",
    "bundle_of",
    "export",
    "network_of",
    "odd_of",
    "report_of",
    "tables_of",
    "unpack",
    "written_by",
]
