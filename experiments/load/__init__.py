"""Mixed load by closed-loop workers, and the quiet user beside it."""
