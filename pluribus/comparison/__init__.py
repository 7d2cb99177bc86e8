"""Methods compared on one network and one data set: the Python face, budgets, statistics, the recommendation."""
