"""The requests that `same_bytes` sends to HMB and to Kafka, one module for each API or group of APIs."""
