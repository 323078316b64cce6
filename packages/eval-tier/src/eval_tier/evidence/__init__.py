"""What is known of a repository: its files at a commit, and what its forge enforces."""
