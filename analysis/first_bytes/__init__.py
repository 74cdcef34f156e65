"""What a message on a WAN link is, told from the first bytes of it that the packet record has.

Only what is in clear can be told: HTTP/1 (its request line, its status), HTTP/2 (the path of a
gRPC method), MinIO's grid (the handler's name), and the frames of the reference store. Garage
encrypts what its nodes say to each other, so of that only the bytes are known.
"""
