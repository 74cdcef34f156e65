"""Objects that are written before anything is measured."""
