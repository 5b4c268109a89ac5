"""Statistics of results: intervals, tests against chance, and theory to compare with."""
