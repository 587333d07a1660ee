# SOURCE_DATE_EPOCH is a number of seconds; the year has four digits.
try() {
    echo "-- $1"
    SOURCE_DATE_EPOCH=$1 $HEFT convert --force bert out.weights
    echo "exit $?"
} 2>&1
try ''
try 12x
try 253402300800
try 99999999999999999999
try -30610224001
try 253402300799
$HEFT info out.weights | grep created
try -30610224000
$HEFT info out.weights | grep created
