"""The experiments of a lecture on Monte Carlo tree search, made again at scale.

The lecture (CSI 4106, University of Ottawa, November 2025) plays its tic-tac-toe players
against each other 100 games at a time. Here every pairing has thousands, and each of the
lecture's counts stands beside ours with the verdict whether the two are compatible.
"""
