# The reader is gone before the first byte; the status of the writer arrives through a file.
{ sleep 0.2; $HEFT ls two.safetensors 2> err; echo $? > code; } | true
while [ ! -s code ]; do sleep 0.05; done
cat code err
