package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

type Broker struct {
	BootstrapServers string `json:"bootstrap_servers"` // for a Kafka client
	Control          string
	Token            string
}

func (broker Broker) faults(method string, body string) string {
	request, _ := http.NewRequest(method, "http://"+broker.Control+"/faults", strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+broker.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	text, _ := io.ReadAll(response.Body)
	return string(text)
}

func main() {
	child := exec.Command("hmb", "broker", "--embedded")
	child.Stderr = os.Stderr
	output, _ := child.StdoutPipe()
	if err := child.Start(); err != nil {
		panic(err)
	}
	line, _ := bufio.NewReader(output).ReadBytes('\n')
	var broker Broker
	if err := json.Unmarshal(line, &broker); err != nil {
		panic(err)
	}
	broker.faults("POST", `{"api": "PRODUCE", "cut": "after", "times": 1}`)
	fmt.Println(broker.faults("GET", ""))
	child.Process.Signal(os.Interrupt)
	child.Wait()
}
