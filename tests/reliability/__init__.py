"""Faults that are injected on purpose, and what HMB does then."""
