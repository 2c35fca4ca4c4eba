"""HMB against the real thing: Kafka clients of several languages and ages, and Kafka's own tools on HMB's files."""
