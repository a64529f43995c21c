"""Proofs: verification by enumeration, certificates, labelled positions."""
