// Counts words with Kafka Streams until it is stopped: java -cp 'JARS/*' StreamsWordCount.java SERVERS ID PROTOCOL GUARANTEE
//
// The application reads the topic `lines`, and writes the number of each word to the topic `counts`. It needs a
// repartition topic, because words are counted by word and lines have no key. PROTOCOL is classic or streams. The
// program prints RUNNING when its tasks run. It ends when its standard input ends, or after an error.

import java.nio.file.Files;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

public class StreamsWordCount {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
        settings.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, arguments[2]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, arguments[3]);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("hmb-words").toString());
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        settings.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 5000);
        if (arguments[2].equals("classic")) {
            settings.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6000);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("lines", Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts-store"))
            .toStream()
            .mapValues(count -> count.toString())
            .to("counts", Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                System.out.println("RUNNING");
            } else if (now == KafkaStreams.State.ERROR) {
                Runtime.getRuntime().halt(1);
            }
        });
        streams.start();
        while (System.in.read() >= 0) {
        }
        streams.close();
    }
}
