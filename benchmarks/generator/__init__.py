"""How many requests a second the generator of load can send, when the store costs nothing."""
