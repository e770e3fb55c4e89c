"""Pages about runs and studies: their words, tables and figures."""
