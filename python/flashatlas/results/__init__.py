"""Results of runs: records and tables, files of results, frames, and texts about results."""
