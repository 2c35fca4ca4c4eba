// Word count with Kafka Streams, as a program of one file: java -cp 'JARS/*' WordCount.java SERVERS TOTAL GUARANTEE
//
// The program counts the words of the topic `words` until it has processed TOTAL records. GUARANTEE is at_least_once or
// exactly_once_v2. It prints one line of JSON, as word_count.py does. The counts are in the default store, RocksDB with a
// changelog topic. The commit interval is 1 s, as long as the time between two snapshots of Hailstorm.

import java.nio.file.Files;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;

public class WordCount {
    public static void main(String[] arguments) throws Exception {
        long total = Long.parseLong(arguments[1]);
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "words-" + System.nanoTime());
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, arguments[2]);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 1000);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("hmb-words").toString());
        settings.put("auto.offset.reset", "earliest");
        AtomicLong counted = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);
        StreamsBuilder builder = new StreamsBuilder();
        // Each partition has its own counts. A repartition topic would write every record to the broker again.
        builder.stream("words", Consumed.with(Serdes.String(), Serdes.String()))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
            .aggregate(() -> 0L, (key, word, count) -> {
                if (counted.incrementAndGet() >= total) {
                    done.countDown();
                }
                return count + 1;
            }, org.apache.kafka.streams.kstream.Materialized.with(Serdes.String(), Serdes.Long()));
        long started = System.nanoTime();
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        done.await();
        streams.close();
        double seconds = (System.nanoTime() - started) / 1e9;
        System.out.printf("{\"seconds\": %.3f, \"words\": %d}%n", seconds, counted.get());
    }
}
