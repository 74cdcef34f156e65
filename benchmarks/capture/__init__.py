"""What the packet record costs: throughput and round trips with it and without, in one run."""
