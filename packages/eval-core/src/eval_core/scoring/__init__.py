"""Rankings scored against judgements: measures, their statistics, the engine and the readers of files."""
