"""Checks of HMB's language: what a machine can find in docstrings, comments, messages and pages.

HMB is read more often than it is run, so its texts have tests as its code has.  The module `texts` finds every text of
the project and says where it is.  The module `rules` finds what a reader would stumble over and a machine can see: long
sentences, sentences without a subject, and words that mean something else in the field.

The command `python -m tests.language` lists texts, draws a random sample for a reader, or prints what breaks a rule::

    python -m tests.language check hmb/storage
    python -m tests.language sample 7 100 --kinds message,trailing
    python -m tests.language list cli --kinds help
"""
