"""The network as data: sites, nodes and links, from a YAML file to a resolved plan."""
