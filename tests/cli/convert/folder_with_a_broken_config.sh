echo '{"hidden_size": }' > bert/config.json
$HEFT convert bert out.weights
