// A group member that uses franz-go, and reports what it does like Kafka's VerifiableConsumer (see python_member.py).
//
//	member 127.0.0.1:9092 TOPIC GROUP
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type place struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

type consumed struct {
	place
	Min int64 `json:"minOffset"`
	Max int64 `json:"maxOffset"`
}

var lines = json.NewEncoder(os.Stdout)

func emit(name string, partitions any) {
	if err := lines.Encode(map[string]any{"name": name, "partitions": partitions}); err != nil {
		log.Fatal(err)
	}
}

func rebalanced(name string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, moved map[string][]int32) {
		places := []place{}
		for topic, numbers := range moved {
			for _, number := range numbers {
				places = append(places, place{topic, number})
			}
		}
		emit("partitions_"+name, places)
	}
}

func main() {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(os.Args[1]), kgo.ConsumeTopics(os.Args[2]), kgo.ConsumerGroup(os.Args[3]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(time.Second),
		kgo.OnPartitionsAssigned(rebalanced("assigned")),
		kgo.OnPartitionsRevoked(rebalanced("revoked")), kgo.OnPartitionsLost(rebalanced("revoked")),
	)
	if err != nil {
		log.Fatal(err)
	}
	for {
		limited, cancel := context.WithTimeout(context.Background(), time.Second)
		fetches := client.PollFetches(limited)
		cancel()
		ranges := []consumed{}
		fetches.EachPartition(func(batch kgo.FetchTopicPartition) {
			if count := len(batch.Records); count > 0 {
				where := place{batch.Topic, batch.Partition}
				ranges = append(ranges, consumed{where, batch.Records[0].Offset, batch.Records[count-1].Offset})
			}
		})
		if len(ranges) > 0 {
			emit("records_consumed", ranges)
			limited, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			if client.CommitUncommittedOffsets(limited) == nil {
				emit("offsets_committed", nil)
			}
			cancel()
		}
		client.AllowRebalance()
	}
}
