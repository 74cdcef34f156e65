"""Does an independent client measure what oneshot measures, and if not, which round trip is it?"""
