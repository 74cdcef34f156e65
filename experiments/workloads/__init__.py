"""What is done on a cluster: requests, RTT steps, load, prefill, reclaim."""
