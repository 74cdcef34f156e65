"""Networks in the files of other tools: each format is a module with one function that reads it."""
