"""Repeats the experiments of a lecture on Monte Carlo tree search, with thousands of games.

The lecture is "Monte Carlo Tree Search" by Marcel Turcotte, in CSI 4106 Introduction to Artificial
Intelligence, University of Ottawa, version of November 26, 2025. It plays its tic-tac-toe players
against each other in series of 100 to 375 games. Here, every pairing has thousands of games, and
each count of the lecture is tested for compatibility with ours.
"""
