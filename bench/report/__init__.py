"""Reports: from the runs of a benchmark to samples, tables and charts.

A reader must be able to trace each figure in a table to its runs. Each run becomes a sample in a file and in a topic.
Tables and charts are made from samples alone. The benchmark commands, `hmb bench show` and the documentation use the
same code for them.

Read in this order:

1. `samples`        one run as a sample; the file and the topic of samples
2. `distribution`   the median and the range of several runs, and percentiles
3. `tables`         tables of text, and ratios of runs of one round
4. `view`           how a scenario declares its tables and its charts
5. `charts`         charts of dots and charts of curves
6. `origin`         groups files by their machine and scale
7. `show`, `plot`   the commands `hmb bench show` and `hmb bench plot`
"""
