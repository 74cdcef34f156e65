"""What a node pays: memory, CPU, files, disk and network, sampled while a study runs."""
