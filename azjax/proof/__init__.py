"""Proofs: verification by enumeration, exhaustive play against every reply, labelled positions."""
