SOURCE_DATE_EPOCH=yesterday $HEFT convert bert out.weights; echo $?
for date in 253402300800 -30610224001; do
    echo "{\"date\": $date}" > bert/config.json
    $HEFT convert --strict bert out.weights; echo "$date: $?"
done
