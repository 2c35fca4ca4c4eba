"""Kills: a topology of two stateful bolts in a row, and processors, negotiators and brokers that die at random moments.

    python -m tests.hailstorm.kills --runs 200

Each run has a seed, which chooses the records, the way of running (threads, or one process for each processor), the
victims and the moments. At the end the states must equal the result of a batch job. The transactional sink must hold
each output exactly once. The idempotent sink must hold each output under one identity.
"""
