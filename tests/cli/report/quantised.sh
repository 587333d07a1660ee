# The page lists quantised tensors with their types, the bytes of all parts, and the parameters that they represent.
PYTHONPATH=$CASES $PYTHON -c "import quantised_samples; quantised_samples.write()"
$HEFT report fp8.safetensors true.safetensors -o page.html
$PYTHON - <<'P'
import re
page = open("page.html").read()
types = re.search(r'"dtypes": \[([^]]*)\]', page)[1].split(", ")
for name, number, more in re.findall(r'\["(\w+\.weight)", (\d+), (\[\d+, \d+\], \d+, \d+)', page):
    print(name, types[int(number)], more)
print(re.findall(r'"summary": "[^"]*"', page))
P
