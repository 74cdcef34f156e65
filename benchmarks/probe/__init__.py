"""What the probe itself costs: oneshot beside a bare socket loop, boto3 and minio-py."""
