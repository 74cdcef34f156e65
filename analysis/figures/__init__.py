"""One module a question: a function from a bundle to a tidy frame of figures."""
