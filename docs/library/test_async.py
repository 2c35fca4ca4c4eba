import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def send_and_read(servers: str, topic: str) -> bytes:
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait(topic, b"coffee")
    async with AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        return (await consumer.getone()).value


def test_an_async_client(kafka_bootstrap_servers, hmb_topic):
    assert asyncio.run(send_and_read(kafka_bootstrap_servers, hmb_topic)) == b"coffee"
