"""What can be broken in a running lab, at a known instant, and healed again.

Each kind of fault is a module of its own with a subclass of `Fault`; `timeline` executes
several of them at their times.
"""
