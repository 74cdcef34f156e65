"""How long labs take to come up and to go, from ten nodes to a thousand, beside Mininet."""
