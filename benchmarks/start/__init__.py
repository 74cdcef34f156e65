"""How long the command line takes to answer: its help, and the error in a mistyped study."""
