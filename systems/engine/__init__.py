"""The engine that runs every system: its definition read, its program found, its cluster run."""
