"""Runs, their repetition, their cost, and studies of one part of a drive."""
