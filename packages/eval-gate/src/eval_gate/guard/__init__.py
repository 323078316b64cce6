"""The guard: every file that is judged relevant is a file of the commit."""
