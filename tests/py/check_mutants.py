"""check_mutants.py CC...: tests tools/mutants.py with a small program whose survivors are known,
and the lists of mutants and of unreached functions.

The program's own tests are its main(). TAP on stdout."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))
import tap  # noqa: E402

SOURCE = """#include <string.h>
typedef enum { HEFT_OK, HEFT_E_FORMAT } heft_status;
static int said;
static heft_status fail(void)
{
    said++;
    return HEFT_E_FORMAT;
}
typedef struct reader {
    heft_status st;
} reader;
static heft_status heft_json_fail(reader *r)
{
    return r->st = HEFT_E_FORMAT;
}
static heft_status read_text(reader *r, int first)
{
    if (first != '"')
        return heft_json_fail(r); /* main() looks at the reader alone */
    return HEFT_OK;
}
static unsigned least(unsigned a, int b) /* no mutant differs only if a equals b */
{
    return a < (unsigned)b ? a : (unsigned)b;
}
static unsigned largest(unsigned a, unsigned b)
{
    if (a < b)
        a = (unsigned)b;
    return a;
}
static int positive(long a)
{
    return a > 0 ? (int)a : 0;
}
static unsigned rest(unsigned a, unsigned b)
{
    return a < b ? b - a : 0;
}
static heft_status check(const char *text, unsigned rank)
{
    if (rank > 8 || !rank)
        return fail(); /* no test has a rank of 8, or of 0 */
    for (unsigned i = 0; i < rank; i++)
        if (text[i] == '-' && text[i + 1] < '5')
            return fail();
    return memcmp(text, "ab", 2) ? HEFT_E_FORMAT : HEFT_OK;
}
int main(void)
{
    int wrong = check("abcdefg", 7) || check("ab-5-", 4) || check("abc", 2) || said;
    reader good = { HEFT_OK }, bad = { HEFT_OK };
    (void)read_text(&good, '"');
    (void)read_text(&bad, '-');
    wrong = wrong || good.st || !bad.st;
    wrong = wrong || least(1, 2) != 1 || least(2, 1) != 1 || rest(1, 3) != 2 || rest(3, 1);
    wrong = wrong || positive(1) != 1 || positive(-1) || largest(1, 2) != 2 || largest(2, 1) != 2;
    wrong = wrong || !check("abcdefghi", 9) || said != 1 || !check("ab-4", 4) || said != 2;
    return wrong || check("ab-5-", 4) || check("ab-", 2) || !check("xb", 2) || said != 2;
}
"""
SURVIVE = {("check", "bound", "rank > 8"), ("check", "right", "rank > 8 || !rank")}
KINDS = {"never", "negate", "left", "right", "bound", "equal", "ok", "same"}


def survivors(source, folder, cc):
    """Mutants of check() that main() does not notice; and killed ones that recorded nothing."""
    mutated = source.render(1)
    (folder / "mutated.c").write_text(mutated)
    program = folder / "mutated"
    options = ["-std=c11", "-w", "-include", str(TOP / "tools/mutant.h"), "-o", str(program)]
    subprocess.run([*cc, *options, str(folder / "mutated.c")], check=True)
    seen = folder / "seen"
    seen.write_bytes(bytes(1 << 17))
    subprocess.run([program], check=True, env={**os.environ, "HEFT_MUTANT_SEEN": str(seen)})
    noticed = {}
    for m in source.mutants:
        if m.function != "main":
            env = {**os.environ, "HEFT_MUTANT": str(m.id)}
            status = subprocess.run([program], env=env, timeout=60, check=False).returncode
            noticed[m.id] = status != 0
    alive = {(m.function, m.kind, m.text) for m in source.mutants if not noticed.get(m.id, True)}
    unseen = [m.key for m in source.mutants if noticed.get(m.id) and not seen.read_bytes()[m.id]]
    return alive, unseen


def moved():
    """Yield the rows of the lists of mutants and of unreached functions whose function is gone."""
    for name in ("mutants.tsv", "unreached.tsv"):
        for line in (TOP / "tools" / name).read_text().splitlines():
            row = line.split("\t")
            path = TOP / row[0]
            if path.suffix == ".c" and not (path.is_file() and re.search(
                    rf"\b{re.escape(row[1])}\(", path.read_text())):
                yield f"tools/{name}: {row[0]} has no function {row[1]}"


def main(cc):
    try:
        import mutants
    except ImportError:
        print("1..0 # SKIP python3-clang is not installed")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "small.c").write_text(SOURCE)
        source = mutants.find(folder, "small.c", [])
        alive, unseen = survivors(source, folder, cc)
        kinds = {m.kind for m in source.mutants if m.function != "main"}
    return tap.report([
        ("every kind of mutant is made", sorted(KINDS ^ kinds)),
        ("the mutants that no test notices are found", [str(k) for k in sorted(SURVIVE ^ alive)]),
        ("every mutant that a test notices is recorded", unseen),
        ("the lists name functions that exist", list(moved())),
    ])


sys.exit(main(sys.argv[1:]))
