"""The labs: exercises for students. `hmb lab` starts a lab, checks the student's answer, and shows hints.

Read in this order:
- `catalog`              finds the labs
- `workspace`            manages the folder in which a student works
- `editor_text`          converts the page of a lab to the file lab.md, which a student reads in an editor
- `jupyter`              converts the notebooks of the labs
- `checking`             starts a separate process, in which pytest tests the answer
- `requirements_plugin`  a plugin of pytest in that process: it stops an answer that needs too much time or
                         memory, and reports the results
- `grading`              checks the answers of a whole class
- `commands`             contains the commands
"""
