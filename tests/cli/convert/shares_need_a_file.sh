# Shares share a folder beside the output, which an address does not have.
"$HEFT" convert --share 1/2 two.safetensors s3://bucket/out.mag || echo "exit $?"
"$HEFT" convert --finish two.safetensors s3://bucket/out.mag || echo "exit $?"
"$HEFT" convert --abort two.safetensors s3://bucket/out.mag || echo "exit $?"
