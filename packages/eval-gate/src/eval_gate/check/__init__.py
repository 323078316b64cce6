"""The check of a report: whether it may be graded, its grades, where it comes from, and the judgement."""
