"""AlphaZero as pure functions in JAX."""
