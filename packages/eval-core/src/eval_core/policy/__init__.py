"""`policy/`: choices and measured runs are kept; floors, bars and odds are derived anew by each reader."""
