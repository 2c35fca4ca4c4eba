// Logs in with franz-go or kafka-go, and prints the names of all topics.
//
//	login franz-go|kafka-go 127.0.0.1:9092 MECHANISM USER SECRET AUTHORITY CERTIFICATE
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
	kafkasasl "github.com/segmentio/kafka-go/sasl"
	kafkaplain "github.com/segmentio/kafka-go/sasl/plain"
	kafkascram "github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type login struct {
	broker, mechanism, user, secret string
	tls                             *tls.Config
}

func main() {
	log.SetFlags(0)
	arguments := os.Args[1:]
	with := login{arguments[1], arguments[2], arguments[3], arguments[4], tlsConfig(arguments[5], arguments[6])}
	clients := map[string]func(context.Context, login) ([]string, error){"franz-go": franz, "kafka-go": segmentio}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	topics, err := clients[arguments[0]](ctx, with)
	if err != nil {
		log.Fatal(err)
	}
	for _, topic := range topics {
		fmt.Println(topic)
	}
}

// tlsConfig returns nil if no file of an authority is given: then the client does not use TLS.
func tlsConfig(authority, certificate string) *tls.Config {
	if authority == "" {
		return nil
	}
	text, err := os.ReadFile(authority)
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}
	config.RootCAs.AppendCertsFromPEM(text)
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, certificate)
		if err != nil {
			log.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

func franz(ctx context.Context, with login) ([]string, error) {
	mechanisms := map[string]sasl.Mechanism{
		"PLAIN":         plain.Auth{User: with.user, Pass: with.secret}.AsMechanism(),
		"SCRAM-SHA-256": scram.Auth{User: with.user, Pass: with.secret}.AsSha256Mechanism(),
		"SCRAM-SHA-512": scram.Auth{User: with.user, Pass: with.secret}.AsSha512Mechanism(),
		"OAUTHBEARER":   oauth.Auth{Token: with.secret}.AsMechanism(),
	}
	options := []kgo.Opt{kgo.SeedBrokers(with.broker), kgo.RequestRetries(0)}
	if with.tls != nil {
		options = append(options, kgo.DialTLSConfig(with.tls))
	}
	if with.mechanism != "" {
		options = append(options, kgo.SASL(mechanisms[with.mechanism]))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	response, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	var topics []string
	for _, topic := range response.Topics {
		topics = append(topics, *topic.Topic)
	}
	return topics, nil
}

func segmentio(ctx context.Context, with login) ([]string, error) {
	var mechanism kafkasasl.Mechanism
	var err error
	switch with.mechanism {
	case "PLAIN":
		mechanism = kafkaplain.Mechanism{Username: with.user, Password: with.secret}
	case "SCRAM-SHA-256":
		mechanism, err = kafkascram.Mechanism(kafkascram.SHA256, with.user, with.secret)
	case "SCRAM-SHA-512":
		mechanism, err = kafkascram.Mechanism(kafkascram.SHA512, with.user, with.secret)
	}
	if err != nil {
		return nil, err
	}
	client := &kafka.Client{
		Addr:      kafka.TCP(with.broker),
		Transport: &kafka.Transport{TLS: with.tls, SASL: mechanism},
	}
	response, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	var topics []string
	for _, topic := range response.Topics {
		topics = append(topics, topic.Name)
	}
	return topics, nil
}
