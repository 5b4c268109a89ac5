"""Inputs of runs: drives, traces, tables as traces, and fio job files."""
