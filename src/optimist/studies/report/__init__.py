"""Report pages of studies: text, tables and figures."""
