"""Register projects in the catalog, and report what changed."""

from floe.catalog.projects.register import register_project
from floe.catalog.projects.report import Report, ReportLine

__all__ = ["Report", "ReportLine", "register_project"]
