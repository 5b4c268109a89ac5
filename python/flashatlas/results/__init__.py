"""Results of runs: records with their tables, kept in files, as frames, and in words."""
