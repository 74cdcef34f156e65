"""One request, timed: the plan of requests, the process that sends them, the records it returns."""
