"""Studies: what to measure, as data; and the runner that measures it and writes a bundle."""
