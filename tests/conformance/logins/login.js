// Logs in with kafkajs, and prints the names of all topics.
//
//     node login.js kafkajs 127.0.0.1:9092 MECHANISM USER SECRET AUTHORITY CERTIFICATE

const { readFileSync } = require('fs')
const { Kafka, logLevel } = require('kafkajs')
const [, broker, mechanism, username, secret, authority, certificate] = process.argv.slice(2)

const sasl =
  mechanism === 'OAUTHBEARER'
    ? { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: secret }) }
    : { mechanism: mechanism.toLowerCase(), username, password: secret }
const pair = certificate ? { cert: readFileSync(certificate), key: readFileSync(certificate) } : {}
const ssl = authority ? { ca: [readFileSync(authority)], servername: 'localhost', ...pair } : undefined

const kafka = new Kafka({
  brokers: [broker],
  logLevel: logLevel.NOTHING,
  retry: { retries: 0 },
  ssl,
  sasl: mechanism ? sasl : undefined,
})

const main = async () => {
  const admin = kafka.admin()
  await admin.connect()
  for (const topic of await admin.listTopics()) console.log(topic)
  await admin.disconnect()
}
main().catch((error) => {
  console.error(String(error))
  process.exit(1)
})
