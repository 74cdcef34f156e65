"""Statistics that know nothing of bundles: intervals, and one bootstrap for all of them."""
