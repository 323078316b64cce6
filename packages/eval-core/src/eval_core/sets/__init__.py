"""What a set is: its definition, documents, queries and judgements, and what it cannot show."""
