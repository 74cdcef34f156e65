"""Where to put the nodes of a cluster: predicted from round trips, confirmed by measurement."""
