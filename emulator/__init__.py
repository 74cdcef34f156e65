"""A topology made real: namespaces, links and their impairments, and proof that they are right."""
