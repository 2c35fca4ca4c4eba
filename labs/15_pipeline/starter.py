"""The beginning of your answer to lab 15: a pipeline with a checkpoint.

Complete `answer.py`, and check it with `hmb lab check 15`.
"""


def plan(folder, end, max_records):
    """Return the next batch to process as (number, begin, end), or None if the source has no new record."""
    return


def commit(folder, number):
    """Mark batch `number` as complete by creating a file."""


def write_output(folder, number, rows):
    """Write the rows of a batch to a file. If the batch is written again, the new rows replace the old ones."""


def read_output(folder):
    """Return the rows of all batches in one list, in the order of the batches."""
    return []


def run(folder, source, transform, max_records):
    """Process all records of `source`, in batches of at most `max_records` records.

    For each record, write one row to the output: the result of `transform(record)`.
    """
