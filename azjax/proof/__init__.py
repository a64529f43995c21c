"""Proofs: verification by enumeration, certificates, labelled positions."""

from azjax.proof.verify import Verdict, verify_outputs

__all__ = ["Verdict", "verify_outputs"]
