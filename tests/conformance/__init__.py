"""Tests with other implementations of Kafka.

Kafka clients in several languages and versions use HMB as their broker, and Kafka's own tools read HMB's files.
"""
