"""What stands between the arguments of a user and arrays: labels, probabilities, weights, alignment by index."""
