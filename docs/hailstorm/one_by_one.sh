# Run the topology of words.py with one process for each processor. $1 is the address of the registry.
options="--registry $1 --store counts --until-end"
for processor in negotiator lines-0 lines-1 split-0 count-0 count-1 console-0; do
  hmb hailstorm run words.py:topology --processor $processor $options &
done
wait
