"""What a drill's bundle says: latency and availability, outages, recovery, what was lost."""
