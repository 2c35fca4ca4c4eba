"""The labs: exercises for students. `hmb lab` starts a lab, checks the student's answer, and shows hints.

Read in this order:
- `catalog`              finds the labs
- `workspace`            manages the folder in which a student works
- `editor_text`          converts the text of a lab for an editor
- `jupyter`              converts the notebooks of the labs
- `checking`             starts a separate process, which tests the answer
- `requirements_plugin`  runs inside that process
- `grading`              checks the answers of a whole class
- `commands`             contains the commands
"""
