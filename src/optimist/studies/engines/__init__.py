"""A study as a plan and its jobs, who performs them, and how far they are."""
