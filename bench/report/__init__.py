"""Reports: the results of benchmark runs, and the tables and charts that are made from them.

A reader must be able to find the runs from which each number in a table was calculated. A benchmark therefore
stores the results of each run as a *sample*, in a file and in a topic. By default, the benchmark itself runs the
broker that stores this topic. All tables and charts are made from these samples. The benchmark commands,
`hmb bench show` and the documentation make their tables with the same code.

Read in this order:
1. `samples`        stores the results of each run as a sample, in a file and in a topic
2. `distribution`   the median and the range of several runs, and percentiles
3. `tables`         tables as text, and the ratios between two of the compared systems
4. `view`           how a scenario declares its tables and its charts
5. `goals`          limits for measured values, and a table that compares the values with the limits
6. `charts`         charts with dots and charts with curves
7. `origin`         groups the files of samples by machine and by scale (`--scale 0.1` is a shorter run)
8. `show`, `plot`   the commands `hmb bench show` and `hmb bench plot`
"""
