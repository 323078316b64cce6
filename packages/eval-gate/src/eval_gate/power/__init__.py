"""What a set can resolve, and how often its floors fail by chance."""
