r"""Commands for records: `hmb produce` sends them, and `hmb consume` prints them.

Kafka stores records: key, value, headers, timestamp. Terminals and shells work with lines. Both commands convert
between records and lines, with the options of three older tools: kafka-console-producer and kafka-console-consumer
(`--property`), kcat (`-K`, `-f '%k %s'`) and rpk (`-f '%v{hex}'`, `-o @-1h`). JSON is exact in both directions::

    $ printf 'Seattle,rain\n' | hmb produce weather -K ,
    $ hmb consume weather -e --json
    {"topic":"weather","partition":0,"offset":0,...,"key":"Seattle","value":"rain","headers":[]}
    $ hmb consume weather -e --json | hmb produce copy --json

These modules convert a line to a record, and back:

    hmb produce   produce_input -> lines -> line_formats -> tally.Portion -> Producer.send_many -> tally
    hmb consume   Consumer.poll -> filters -> formats or record_json -> standard output -> commits

Read in this order:

1. `line_formats`      from a line to a record
2. `record_json`       a record as one line of JSON
3. `produce`           the command; `produce_options` declares its options
4. `lines`             a stream in lines, with a limit and with a way to stop it
5. `produce_input`     files, standard input and progress
6. `tally`             the counts of delivered, lost and unacknowledged records
7. `consume`           the command; `consume_options` declares its options
8. `offset_grammar`    `-o`: where to start and where to stop
9. `formats`           `-f`: from a record to text; `unpack` and `kafka_format` complete it
10. `filters`          regular expressions for keys, values and headers
11. `commits`          committed offsets of a group: only printed records count
"""
