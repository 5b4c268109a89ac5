"""Runs of drives: execution, repetition from a record, cost, and studies of one mechanism."""
