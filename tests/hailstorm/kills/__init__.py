"""Kills processors, negotiators and brokers at random moments. The topology has two stateful bolts in a row.

    python -m tests.hailstorm.kills --runs 200

Each run has a seed, which chooses the records, the way of running (threads, or one process for each processor), the
victims and the moments. At the end the states must equal the result of a batch job. The transactional sink must hold
each output exactly once. The idempotent sink must hold each output under one identity.
"""
