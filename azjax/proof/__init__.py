"""Proofs: in every position, on labelled positions, and against every reply."""

from azjax.proof.enumeration import Verdict, verify_outputs

__all__ = ["Verdict", "verify_outputs"]
