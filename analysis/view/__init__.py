"""`wanlat view`: bundles in a browser on this machine, and runs that are under way."""
