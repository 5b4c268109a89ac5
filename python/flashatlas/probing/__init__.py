"""Measurements of a drive from outside, by commands of a host and their latencies alone."""
