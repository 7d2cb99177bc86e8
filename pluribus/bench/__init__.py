"""What every method costs, as ratios to the base network on the same batch in the same interleaved run.

A *heat* is one race: the base network and what is made of it do the same work in turns. Three parts are made of heats: the
targets, the table (methods × networks), and growth with M and K. They leave one JSON file; Markdown, figures and the cost
table of the documentation are generated from it.
"""
