// Reads the topics of MirrorMaker 2 with Kafka's own class RemoteClusterUtils.
//
//     java -cp 'libs/*' Checkpoints.java BOOTSTRAP ALIAS GROUP
//
// The output is a line for each partition, with the translated offset, and a line with the clusters that are sources.

import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

public class Checkpoints {
  public static void main(String[] words) throws Exception {
    Map<String, Object> settings = Map.of("bootstrap.servers", words[0]);
    Map<TopicPartition, OffsetAndMetadata> offsets =
        RemoteClusterUtils.translateOffsets(settings, words[1], words[2], Duration.ofSeconds(30));
    Map<String, Long> sorted = new TreeMap<>();
    offsets.forEach((partition, offset) -> sorted.put(partition.toString(), offset.offset()));
    sorted.forEach((partition, offset) -> System.out.println(partition + " " + offset));
    System.out.println("upstream " + RemoteClusterUtils.upstreamClusters(settings));
    System.exit(0);
  }
}
