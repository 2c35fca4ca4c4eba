"""Tests against other implementations: Kafka clients in several languages and versions, and Kafka's own tools on HMB's
files.
"""
