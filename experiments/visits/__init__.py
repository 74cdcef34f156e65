"""A study that visits several RTTs: its model, its schedule, and how it is run and written down."""
