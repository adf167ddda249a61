"""Make the catalog agree with what a project declares; say what that changed."""

from floe.catalog.projects.register import register_project
from floe.catalog.projects.report import Report, ReportLine

__all__ = ["Report", "ReportLine", "register_project"]
