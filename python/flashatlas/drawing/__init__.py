"""Drawing of results: tables and plots in the terminal, and figures for papers."""
