"""Resource usage: memory, CPU, files, disk and network beside the latencies of a run."""
