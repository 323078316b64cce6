"""An arm put to its backend: the plan, the loop, the answers, and the report that comes of them."""
