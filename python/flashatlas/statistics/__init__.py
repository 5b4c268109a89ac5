"""Statistics of results: intervals, tests of significance, and theoretical models."""
