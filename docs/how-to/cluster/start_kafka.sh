# Start the brokers of a cluster on this machine, for example: bash start_kafka.sh 1 2 3
# $KAFKA is the folder with the jars of Apache Kafka. Each broker is also a controller.
set -e
brokers=([1]=19092 [2]=29092 [3]=39092)
controllers=([1]=19093 [2]=29093 [3]=39093)
for n in "$@"; do
  mkdir -p kafka-$n
  cat > kafka-$n/server.properties <<PROPERTIES
process.roles=broker,controller
node.id=$n
listeners=PLAINTEXT://127.0.0.1:${brokers[$n]},CONTROLLER://127.0.0.1:${controllers[$n]}
advertised.listeners=PLAINTEXT://127.0.0.1:${brokers[$n]}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
controller.quorum.voters=1@127.0.0.1:${controllers[1]},2@127.0.0.1:${controllers[2]},3@127.0.0.1:${controllers[3]}
log.dirs=$PWD/kafka-$n/data
min.insync.replicas=2
offsets.topic.replication.factor=3
offsets.topic.num.partitions=3
PROPERTIES
  if [ ! -e kafka-$n/data/meta.properties ]; then
    java -cp "$KAFKA/*" kafka.tools.StorageTool format --cluster-id MkU3OEVBNTcwNTJENDM2Qk \
      --config kafka-$n/server.properties > kafka-$n/format.log 2>&1
  fi
  java -Xmx512m -cp "$KAFKA/*" kafka.Kafka kafka-$n/server.properties > kafka-$n/broker.log 2>&1 &
  echo $! > kafka-$n/pid
done
for n in "$@"; do
  until hmb meta -b 127.0.0.1:${brokers[$n]} > /dev/null 2>&1; do sleep 0.5; done
  echo "broker $n is ready"
done
