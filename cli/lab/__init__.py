"""The labs: exercises for students. `hmb lab` starts a lab, checks the student's answer, and shows hints.

The module catalog.py finds the labs. The module workspace.py manages the folder in which a student works. The module
checking.py starts a separate process, which tests the answer. The module requirements_plugin.py runs inside that
process. The module commands.py contains the commands.
"""
