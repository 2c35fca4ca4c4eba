// A group member that uses kafkajs, and reports what it does like Kafka's VerifiableConsumer (see python_member.py).
//
//     node member.js 127.0.0.1:9092 TOPIC GROUP

const { Kafka, logLevel } = require('kafkajs')
const [bootstrap, topic, groupId] = process.argv.slice(2)

const emit = (name, fields) => console.log(JSON.stringify({ name, ...fields }))
const all = (assignment) =>
  Object.entries(assignment).flatMap(([topic, numbers]) => numbers.map((partition) => ({ topic, partition })))

const kafka = new Kafka({ clientId: 'kafkajs', brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 50 } })
const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 1000, retry: { retries: 50 } })

let owned = []
const revoke = () => {
  if (owned.length) emit('partitions_revoked', { partitions: owned })
  owned = []
}
consumer.on(consumer.events.REBALANCING, revoke)
consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  revoke()
  owned = all(payload.memberAssignment)
  emit('partitions_assigned', { partitions: owned })
})

const main = async () => {
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch, isRunning, isStale }) => {
      const offsets = batch.messages.map((message) => Number(message.offset))
      if (!offsets.length || !isRunning() || isStale()) return
      const [minOffset, maxOffset] = [offsets[0], offsets[offsets.length - 1]]
      emit('records_consumed', { partitions: [{ topic, partition: batch.partition, minOffset, maxOffset }] })
      await consumer.commitOffsets([{ topic, partition: batch.partition, offset: String(maxOffset + 1) }])
      emit('offsets_committed', {})
    },
  })
}
main().catch((error) => {
  console.error(error)
  process.exit(1)
})
