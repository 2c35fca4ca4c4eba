# Start a Spark cluster on this machine: a master, and two workers with one core each.
set -e
export SPARK_LOCAL_IP=127.0.0.1
spark=$(python -c 'import pyspark; print(pyspark.__path__[0])')
start() {  # start NAME CLASS ARGUMENT ...
  $spark/bin/spark-class org.apache.spark.deploy.$2 --host 127.0.0.1 --webui-port 0 "${@:3}" > spark-$1.log 2>&1 &
  echo $! > spark-$1.pid
}
start master master.Master --port 7077
until grep -qs "Starting Spark master" spark-master.log; do sleep 0.5; done
for n in 1 2; do
  start worker-$n worker.Worker --cores 1 --memory 1g --work-dir $PWD/spark-work spark://127.0.0.1:7077
done
until [ "$(grep -c "Registering worker" spark-master.log)" = 2 ]; do sleep 0.5; done
echo "the master has two workers"
