"""Slow models of parts of a drive, written from the documentation alone.

Their authors have not seen the code of these parts. They decide page by page with plain lists, and
tests compare their numbers with the numbers of runs.
"""
