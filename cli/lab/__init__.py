"""The labs: `hmb lab` starts them, checks the answers of students, and shows hints.

The module catalog.py finds the labs. The module workspace.py keeps the folder in which a student works. The module
checking.py runs the requirements in a process of its own, and requirements_plugin.py is the part that runs inside this
process. The module commands.py contains the commands.
"""
