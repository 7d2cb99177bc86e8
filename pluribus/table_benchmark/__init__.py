"""`pluribus bench tables`: our networks and methods on regression tables, beside other libraries that are tuned alike.

contenders.py says who takes part and what is tuned of each; ours.py, tabm_peer.py and other_libraries.py train them. cells.py
tunes one contender on one split of one table, and run.py runs all of these on the engine of `pluribus.experiments`. ranking.py
has the rule for ranks and leads, page.py what is shown of it.
"""
