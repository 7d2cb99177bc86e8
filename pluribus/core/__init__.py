"""The contract, layer surgery, late branching, predictions, errors. It imports nothing else of ours."""
