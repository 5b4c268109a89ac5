"""The report: one self-contained HTML file for one run or many."""

from flashatlas.report.page import render, write_report

__all__ = ["render", "write_report"]
