"""Checks of the English in HMB: a program finds mistakes in docstrings, comments, messages and pages.

People read HMB more often than they run it. Its texts therefore have tests, like its code. The module `texts` finds
every text of the project and its position. The module `rules` finds some of the mistakes that make a text hard to read:
long sentences, sentences without a subject, and unusual words for which a usual word exists.

The command `python -m tests.language` lists texts, draws a random sample for a reader, or prints the mistakes::

    python -m tests.language check hmb/storage                        # print the mistakes in the folder hmb/storage
    python -m tests.language sample 7 100 --kinds message,trailing    # draw 100 texts; the random seed is 7
    python -m tests.language list cli --kinds help                    # list the help texts in the folder cli

The tests in test_language.py fail if a text of the project contains one of the mistakes that `rules` can find.
"""
