/* test_nfc.c - detection of text outside Unicode NFC, compared with Python for 100,000 texts. */
#include <stdio.h>
#include <stdlib.h>

#include "base/nfc.h"
#include "heft_test.h"

enum { MAX_BYTES = 65536 };

typedef struct vector {
    uint8_t text[MAX_BYTES];
    uint16_t len;
    char verdict;
} vector;

static bool read_vector(vector *v, FILE *f)
{
    int c = fgetc(f);
    v->verdict = (char)c;
    if (c == EOF)
        return false;
    assert_int_equal(fread(&v->len, sizeof v->len, 1, f), 1);
    heft_test_le(&v->len, 1, sizeof v->len);
    assert_int_equal(fread(v->text, 1, v->len, f), v->len);
    return true;
}

static void print(const vector *v)
{
    for (size_t i = 0; i < v->len; i++)
        print_error("%02x ", v->text[i]);
    print_error("\n");
}

static void agrees_with_python_about_nfc(void **state)
{
    const char *python = getenv("HEFT_PYTHON");
    char command[512];
    unsigned counts[256] = { 0 };
    (void)state;
    snprintf(command, sizeof command, "%s tests/py/gen_nfc_vectors.py",
             python ? python : "python3");
    FILE *f = popen(command, "r");
    vector *v = malloc(sizeof *v);
    assert_non_null(f);
    assert_non_null(v);
    while (read_vector(v, f)) {
        bool breaks = heft_str_breaks_nfc((heft_str){ (const char *)v->text, v->len });
        bool agrees = v->verdict == '?' || breaks == (v->verdict == 'n');
        counts[(uint8_t)v->verdict]++;
        if (!agrees)
            print(v);
        assert_true(agrees);
    }
    assert_int_equal(pclose(f), 0);
    assert_true(counts['y'] > 50000 && counts['n'] > 5000 && counts['?'] > 1000);
    free(v);
}

static void reads_nothing_beyond_a_truncated_character(void **state)
{
    (void)state;
    for (size_t len = 0; len <= 4; len++) {
        char *text = malloc(len ? len : 1);
        assert_non_null(text);
        memcpy(text, "\xf0\x9f\x98\x80", len);
        assert_false(heft_str_breaks_nfc((heft_str){ text, len }));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_python_about_nfc),
        cmocka_unit_test(reads_nothing_beyond_a_truncated_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
