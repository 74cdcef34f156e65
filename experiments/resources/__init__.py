"""Resource usage of nodes: memory, CPU, files, disk and network, sampled while a study runs."""
