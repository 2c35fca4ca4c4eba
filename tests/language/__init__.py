"""Checks of HMB's language: the mistakes that a program can find in docstrings, comments, messages and pages.

HMB is read more often than it runs, so its texts have tests, as its code has. The module `texts` finds every text of
the project and its position. The module `rules` finds some of the mistakes that make a text hard to read: long
sentences, sentences without a subject, and words that have another meaning in the field.

The command `python -m tests.language` lists texts, draws a random sample for a reader, or prints the mistakes::

    python -m tests.language check hmb/storage
    python -m tests.language sample 7 100 --kinds message,trailing
    python -m tests.language list cli --kinds help

test_language.py runs the check over the whole project.
"""
