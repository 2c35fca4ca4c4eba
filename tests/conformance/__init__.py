"""Tests of HMB with other implementations of Kafka's clients and broker.

Kafka clients in several languages and versions use HMB as their broker, and Kafka's own tools read HMB's files.
"""
