r"""Commands for records: `hmb produce` sends them, and `hmb consume` prints them.

Terminals and shells work with lines of text. `hmb produce` converts lines to records, and `hmb consume` converts
records to lines. The options are those of older tools: Kafka's console tools (`--property`), kcat (`-K`,
`-f '%k %s'`) and rpk (`-f '%v{hex}'`, `-o @-1h`).

Most formats show only a part of a record, for example its value. With `--json`, `hmb consume` prints the whole
record with its topic, partition and offset. `hmb produce --json` can read these lines. It keeps the partition, key,
value, headers and timestamp, but ignores the topic and the offset. The last command of the next example copies all
records to the topic "copy":
    $ printf 'Seattle,rain\n' | hmb produce weather -K ,
    $ hmb consume weather -e --json
    {"topic":"weather","partition":0,"offset":0,...,"key":"Seattle","value":"rain","headers":[]}
    $ hmb consume weather -e --json | hmb produce copy --json

A line or a record takes these steps, from left to right. `Producer.send_many` and `Consumer.poll` are methods of the
client. The other names are modules of this folder:
    hmb produce   produce_input -> lines -> line_formats or record_json -> Producer.send_many -> tally
    hmb consume   Consumer.poll -> filters -> formats or record_json -> (the line is printed) -> commits

Read in this order:
1. `line_formats`      the conversion of a line to a record
2. `record_json`       the conversion between a record and a line of JSON
3. `produce`           the command; `produce_options` declares its options
4. `lines`             reads a stream line by line
5. `produce_input`     reads files or standard input, and shows the progress
6. `tally`             the counts of delivered, lost and unacknowledged records
7. `consume`           the command; `consume_options` declares its options
8. `offset_grammar`    the option `-o`: where to start and where to stop
9. `formats`           the option `-f`: converts a record to text, with the help of `unpack` and `kafka_format`
10. `filters`          regular expressions for keys, values and headers
11. `commits`           commits the offsets of the records that were printed
12. `idle_limit`        the option `--timeout-ms`: the end of the command when no record arrives
13. `consume_share`     `hmb consume --share`: prints records as a member of a share group
"""
