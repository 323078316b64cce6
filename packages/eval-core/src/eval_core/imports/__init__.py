"""Files of other tools, read for what they judge."""
