"""The operating envelope: how far apart the nodes of a cluster may be, found on live links."""
