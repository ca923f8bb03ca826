"""One self-contained HTML page from run and study directories."""

from corl.report.page import write_report

__all__ = ["write_report"]
