"""Kills processors, negotiators and brokers at random moments. The topology has two stateful bolts in a row.

    python -m tests.hailstorm.kills --runs 200

Each run has a seed. The seed decides whether each processor is a thread or a process of its own. It also chooses the
records, what is killed, and the times of the kills.

At the end of a run, the states must equal the result of a batch job. The transactional sink must have written each
output exactly once. The table of the idempotent sink must contain exactly one row for each output.
"""
