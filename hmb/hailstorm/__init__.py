"""Hailstorm."""
