/* dump.c - the content of an open file as text. */
#include "dump.h"

static void put_str(FILE *out, heft_str s)
{
    putc_unlocked('"', out);
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c < ' ' || c > '~' || c == '"' || c == '\\')
            fprintf(out, "\\x%02x", c);
        else
            putc_unlocked(c, out);
    }
    putc_unlocked('"', out);
}

static const char *dtype_name(heft_dtype t)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    return d ? d->name : "none";
}

static void put_array(FILE *out, const heft_value *v)
{
    size_t len = v->as.array.count * (size_t)heft_dtype_get(v->as.array.dtype)->block_bytes;
    fprintf(out, "%u %s ", v->as.array.count, dtype_name(v->as.array.dtype));
    put_str(out, (heft_str){ v->as.array.ptr, len });
}

static void put_value(FILE *out, const heft_value *v)
{
    static const char *const kinds[] = { "null",  "bool",  "int",   "uint", "float", "str",
                                         "bytes", "id128", "array", "list", "map" };
    uint64_t bits;
    memcpy(&bits, &v->as.f, sizeof bits);
    put_str(out, v->key);
    fprintf(out, " %s ", kinds[v->kind]);
    if (v->kind == HEFT_KIND_BOOL)
        fprintf(out, "%d", v->as.b);
    else if (v->kind == HEFT_KIND_INT)
        fprintf(out, "%lld", (long long)v->as.i);
    else if (v->kind == HEFT_KIND_UINT)
        fprintf(out, "%llu", (unsigned long long)v->as.u);
    else if (v->kind == HEFT_KIND_FLOAT)
        fprintf(out, "%016llx", (unsigned long long)bits);
    else if (v->kind == HEFT_KIND_STR || v->kind == HEFT_KIND_BYTES || v->kind == HEFT_KIND_ID128)
        put_str(out, v->as.s);
    else if (v->kind == HEFT_KIND_LIST || v->kind == HEFT_KIND_MAP)
        fprintf(out, "of %u", v->as.container.count);
    else if (v->kind == HEFT_KIND_ARRAY)
        put_array(out, v);
    if (v->stored)
        fprintf(out, " stored as %s", dtype_name(v->stored));
    putc_unlocked('\n', out);
}

static void put_part(FILE *out, const heft_file *f, uint32_t part, int mode)
{
    heft_part p = heft_part_at(f, part);
    fputs("  part ", out);
    put_str(out, p.role);
    fprintf(out, " %s length %llu", dtype_name(p.dtype), (unsigned long long)p.length);
    if (mode & DUMP_ALL) {
        fprintf(out, " encoding %d at %llu stored %llu digest ", p.encoding,
                (unsigned long long)p.offset, (unsigned long long)p.stored);
        put_str(out, p.digest);
    }
    putc_unlocked('\n', out);
}

static int order_text(heft_str a, heft_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* Return the i-th part of the tensor, sorted by role: the stored order is not part of the model. */
static uint32_t part_by_role(const heft_file *f, const heft_tensor *t, uint32_t i)
{
    for (uint32_t k = 0; k < t->part_count; k++) {
        uint32_t below = 0;
        for (uint32_t j = 0; j < t->part_count; j++)
            below += order_text(heft_part_at(f, t->first_part + j).role,
                                heft_part_at(f, t->first_part + k).role) < 0;
        if (below == i)
            return t->first_part + k;
    }
    fail_msg("a role comes twice");
    return HEFT_NONE;
}

static void put_tensor(FILE *out, const heft_file *f, uint32_t id, int mode)
{
    heft_tensor t = heft_tensor_at(f, id);
    heft_value v;
    fputs("tensor ", out);
    put_str(out, t.name);
    fprintf(out, " %s ", dtype_name(t.dtype));
    put_str(out, heft_tensor_layout_name(f, id));
    for (uint32_t i = 0; i < t.rank; i++)
        fprintf(out, " %llu", (unsigned long long)t.dims[i]);
    fprintf(out, " bytes %llu found %d\n", (unsigned long long)heft_tensor_bytes(f, id),
            heft_tensor_find(f, t.name) == id);
    for (uint32_t i = 0; i < t.part_count; i++)
        put_part(out, f, mode & DUMP_ALL ? t.first_part + i : part_by_role(f, &t, i), mode);
    for (uint32_t i = 0, n = heft_attribute_count(f, id); mode & DUMP_ALL && i < n; i++) {
        v = heft_attribute_at(f, id, i);
        fputs("  attribute ", out);
        put_value(out, &v);
    }
}

/* Write tokens and special ids, not bytes: layouts store a vocabulary in different ways. */
static void put_vocab(FILE *out, const heft_file *f)
{
    heft_vocab *v;
    heft_error err;
    heft_status st = heft_vocab_open(&v, f, &err);
    if (st == HEFT_E_NOTFOUND)
        return;
    heft_assert_ok(st, &err);
    for (uint32_t i = 0; i < heft_vocab_count(v); i++) {
        heft_str token = heft_vocab_at(v, i);
        fprintf(out, "token %u found %d ", i, heft_vocab_find(v, token) <= i);
        put_str(out, token);
        putc_unlocked('\n', out);
    }
    for (int i = 0; i < HEFT_SPECIALS; i++)
        fprintf(out, "special %s %u\n", heft_vocab_special_name((heft_special)i),
                heft_vocab_special(v, (heft_special)i));
    heft_vocab_close(v);
}

static bool is_vocab(const heft_file *f, uint32_t part)
{
    heft_part p = heft_part_at(f, part);
    return p.role.len == 5 && !memcmp(p.role.ptr, "vocab", 5);
}

static void put_file(FILE *out, const heft_file *f)
{
    heft_checksum sum;
    fprintf(out, "format %s version ", heft_format_name(heft_file_format(f)));
    put_str(out, heft_file_version(f));
    fprintf(out, " size %llu alignment %llu\n", (unsigned long long)heft_file_size(f),
            (unsigned long long)heft_file_alignment(f));
    for (uint32_t i = 0, n = heft_checksum_count(f); i < n; i++) {
        sum = heft_checksum_at(f, i);
        fprintf(out, "checksum %s %s of %llu at %llu\n", sum.rule, sum.algorithm,
                (unsigned long long)sum.range.length, (unsigned long long)sum.range.offset);
    }
}

/* ---- tensors and values, sorted by name ------------------------------------------------------ */

typedef struct keyed {
    heft_str key;
    uint32_t i;
} keyed;

static int by_key(const void *a, const void *b)
{
    return order_text(((const keyed *)a)->key, ((const keyed *)b)->key);
}

/* Return the tensors, or the values at the top level: in file order with DUMP_ALL, otherwise sorted
 * by name. */
static keyed *list_by_name(const heft_file *f, bool is_tensors, int mode, uint32_t *count)
{
    uint32_t end = is_tensors ? heft_tensor_count(f) : heft_meta_count(f), n = 0;
    keyed *list = calloc(end + 1u, sizeof *list);
    assert_non_null(list);
    for (uint32_t i = 0; i < end; i = is_tensors ? i + 1 : heft_meta_next(f, i))
        list[n++] = (keyed){ is_tensors ? heft_tensor_at(f, i).name : heft_meta_at(f, i).key, i };
    if (!(mode & DUMP_ALL))
        qsort(list, n, sizeof *list, by_key);
    *count = n;
    return list;
}

static void put_tensors(FILE *out, const heft_file *f, int mode)
{
    uint32_t n;
    keyed *list = list_by_name(f, true, mode, &n);
    for (uint32_t i = 0; i < n; i++)
        put_tensor(out, f, list[i].i, mode);
    free(list);
}

static void put_metadata(FILE *out, const heft_file *f, int mode)
{
    uint32_t n;
    keyed *list = list_by_name(f, false, mode, &n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = list[i].i; k < heft_meta_next(f, list[i].i); k++) {
            heft_value v = heft_meta_at(f, k);
            fprintf(out, "meta %u ", heft_meta_next(f, k) - k);
            put_value(out, &v);
        }
    free(list);
}

char *heft_test_dump(const heft_file *f, int mode)
{
    char *text;
    size_t len;
    uint32_t first;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    if (mode & DUMP_ALL)
        put_file(out, f);
    put_tensors(out, f, mode);
    for (uint32_t i = 0, n = heft_file_parts(f, &first); i < n; i++)
        if (mode & DUMP_ALL || !is_vocab(f, first + i))
            put_part(out, f, first + i, mode);
    put_vocab(out, f);
    put_metadata(out, f, mode);
    assert_int_equal(fclose(out), 0);
    return text;
}

void heft_assert_same_text(const char *a, const char *b)
{
    if (!strcmp(a, b))
        return;
    while (*a == *b) {
        const char *next = strchr(a, '\n');
        size_t line = next ? (size_t)(next - a) + 1 : strlen(a);
        if (strncmp(a, b, line) != 0)
            break;
        a += line;
        b += line;
    }
    print_error("the first lines that differ:\n  %.*s\n  %.*s\n", (int)strcspn(a, "\n"), a,
                (int)strcspn(b, "\n"), b);
    fail();
}

/* ---- verify --------------------------------------------------------------------------------- */

static void put_finding(void *ctx, const heft_finding *n)
{
    static const char *const severities[] = { "note", "warning", "fault" };
    fprintf(ctx, "%s %s at %lld length %lld tensor %d: %s\n", severities[n->severity], n->rule,
            (long long)n->where.offset, (long long)n->where.length, (int)n->tensor, n->text);
}

char *heft_test_findings(heft_verify_result *out, heft_status *st, const heft_file *f,
                         heft_error *err)
{
    char *text;
    size_t len;
    FILE *to = open_memstream(&text, &len);
    assert_non_null(to);
    *st = heft_file_verify(
        out, f,
        &(heft_verify_options){ sizeof(heft_verify_options), .on_finding = put_finding, .ctx = to },
        err);
    assert_int_equal(fclose(to), 0);
    return text;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static heft_status read_part(const heft_file *f, uint32_t part, uint8_t *buf, size_t size,
                             heft_error *err)
{
    uint64_t length = heft_part_at(f, part).length;
    const uint8_t *view = heft_part_view(f, part);
    for (uint64_t from = 0; from < length; from += size) {
        size_t n = length - from < size ? (size_t)(length - from) : size;
        heft_status st = heft_part_read(buf, f, part, from, n, err);
        if (st)
            return st;
        if (view)
            assert_memory_equal(buf, view + from, n);
    }
    return HEFT_OK;
}

heft_status heft_test_read_all(const heft_file *f, heft_error *err)
{
    uint8_t buf[4099];
    uint32_t first, n = heft_file_parts(f, &first);
    heft_status st = HEFT_OK;
    for (uint32_t part = 0; part < first + n && !st; part++)
        st = read_part(f, part, buf, sizeof buf, err);
    return st;
}

bool heft_test_is_readable(const heft_file *f)
{
    return !heft_test_read_all(f, NULL) && !heft_file_is_complete(f, NULL);
}
