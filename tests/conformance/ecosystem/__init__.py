"""Programs that are built on Kafka's clients run with HMB as their broker.

Each test runs a program that stores its state in topics of HMB:

- `test_kafka_streams`      Kafka Streams counts words, and keeps the counts in a changelog topic;
- `test_kafka_connect`      two workers of Kafka Connect copy a file, and keep offsets and settings in topics;
- `test_mirror_maker_2`     MirrorMaker 2 copies a topic from one HMB to another one, and writes checkpoints;
- `test_apicurio_registry`  the Apicurio registry stores schemas in a topic, and reads the topic when it starts.

`fetch_kafka.sh` and `fetch_clients.sh` download programs such as Kafka Streams and MirrorMaker 2. If the
program of a test is not installed, the test is skipped.
"""
