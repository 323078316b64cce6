"""What a CI file would do: its jobs, when they are run, and the commands that they come to."""
