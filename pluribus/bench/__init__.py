"""The benchmark: what every method costs, as ratios to the base network on the same batch in the same interleaved run.

Its three parts are the targets, the table (methods × networks), and growth with M and K. Each consists of measurements, in
which the base network and candidates built from it run the same workload in turns. Results are kept in one JSON file, from
which the page, the figures and the cost table of the documentation are made.
"""
