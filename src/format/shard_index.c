/* shard_index.c - reads the index of a model in several safetensors or PyTorch files.
 *
 *   {"metadata": {"total_size": bytes of all tensors, ...}, "weight_map": {tensor: file, ...}}
 *
 * The shards are complete files of the format, in the same folder as the index.  Tensors are listed
 * by the name of the shard, and within a shard in the shard's order.
 */
#include "format/shard_index.h"

#include "base/path_risk.h"
#include "base/sort.h"
#include "grammar/json.h"
#include "model/values.h"

typedef struct reader {
    const heft_shard_index_kind *kind;
    heft_json j;
    heft_index *x;
    bool has_map, has_metadata;
} reader;

/* ---- recognition ---- */

bool heft_shard_index_is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Return the length of the byte order mark of UTF-8, or 0. */
static size_t mark_length(const void *text, size_t len)
{
    enum { MARK = 3 };
    return len >= MARK && !memcmp(text, "\xEF\xBB\xBF", MARK) ? MARK : 0;
}

bool heft_shard_index_is_json_object(const uint8_t *first)
{
    enum { FIRST = 8 };
    size_t at = mark_length(first, FIRST);
    while (at < FIRST && heft_shard_index_is_space(first[at]))
        at++;
    bool is_text = at == FIRST || first[at] == '{';
    for (; is_text && at < FIRST; at++)
        is_text = heft_shard_index_is_space(first[at]) || (first[at] >= ' ' && first[at] != 0x7F);
    return is_text;
}

static const char map_key[] = "\"weight_map\"";

/* Return the offset after the next key "weight_map" from `at` on, or len. */
static size_t after_key(const uint8_t *head, size_t len, size_t at)
{
    size_t key = sizeof map_key - 1;
    const uint8_t *found = heft_str_seek(head + at, head + len, map_key, key);
    return found ? (size_t)(found - head) + key : len;
}

bool heft_shard_index_recognise(const uint8_t *head, size_t len)
{
    return len >= sizeof map_key - 1 && heft_shard_index_is_json_object(head) &&
           after_key(head, len, 0) < len;
}

/* Skip white space and the character c; return false, after the white space, if c does not
 * follow. */
static bool skip_char(const uint8_t *head, size_t len, size_t *at, char c)
{
    while (*at < len && heft_shard_index_is_space(head[*at]))
        ++*at;
    bool matches = *at < len && head[*at] == (uint8_t)c;
    *at += matches;
    return matches;
}

/* Take the text up to the closing quote, and skip the quote. */
static heft_str take_quoted(const uint8_t *head, size_t len, size_t *at)
{
    size_t from = *at;
    while (*at < len && head[*at] != '"')
        *at += head[*at] == '\\' ? 2 : 1;
    if (*at >= len)
        return (heft_str){ "", 0 };
    return (heft_str){ (const char *)head + from, (*at)++ - from };
}

heft_str heft_shard_index_first_shard(const uint8_t *head, size_t len)
{
    for (size_t key = after_key(head, len, 0); key < len; key = after_key(head, len, key)) {
        size_t at = key;
        if (!skip_char(head, len, &at, ':') || !skip_char(head, len, &at, '{') ||
            !skip_char(head, len, &at, '"'))
            continue;
        take_quoted(head, len, &at);
        bool is_named = skip_char(head, len, &at, ':');
        if (!HEFT_IS_LEAN)
            (void)skip_char(head, len, &at, '['); /* Keras */
        if (is_named && skip_char(head, len, &at, '"'))
            return take_quoted(head, len, &at);
    }
    return (heft_str){ "", 0 };
}

/* ---- metadata ---- */

static heft_status read_total(reader *r)
{
    bool is_whole = !HEFT_IS_LEAN && r->kind->names_groups && heft_str_ends(r->j.text, ".0");
    r->j.text.len -= is_whole ? 2 : 0; /* Keras adds bytes as a float */
    if (heft_json_u64(&r->x->stated_tensor_bytes, r->j.text))
        return HEFT_OK;
    r->x->stated_tensor_bytes = HEFT_UNKNOWN_LENGTH;
    heft_ix_note(r->x, HEFT_NOTE, r->kind->total_rule, r->j.base, HEFT_NONE,
                 "total_size is not an integer; it is not compared with the tensors");
    return HEFT_OK;
}

static heft_status read_metadata(reader *r)
{
    heft_json_kind k = heft_json_next(&r->j);
    if (r->has_metadata)
        return heft_json_fail(&r->j, "the index has two members \"metadata\"");
    r->has_metadata = true;
    if (k == HEFT_JSON_NULL)
        return HEFT_OK;
    if (k != HEFT_JSON_OBJECT)
        return heft_json_fail(&r->j, "\"metadata\" of the index is not an object");
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_KEY) {
        heft_value v = { .kind = HEFT_KIND_STR, .key = r->j.text };
        bool is_total = heft_str_is(v.key, "total_size");
        k = heft_json_next(&r->j);
        v.as.s = r->j.text;
        /* Texts describe the model; numbers other than total_size describe the index and are
         * skipped. */
        if (k == HEFT_JSON_NUMBER && is_total)
            HEFT_TRY(read_total(r));
        else if (k == HEFT_JSON_STRING)
            HEFT_TRY(heft_ix_meta(r->x, v));
        else
            HEFT_TRY(heft_json_skip(&r->j, k));
    }
    return r->j.st;
}

/* ---- the map ---- */

/* Drop "./" before the name. */
static heft_str without_dot(heft_str s)
{
    while (heft_str_begins(s, "./"))
        s = (heft_str){ s.ptr + 2, s.len - 2 };
    return s;
}

bool heft_shard_index_is_torch_name(heft_str file)
{
    static const char *const suffixes[] = { ".bin", ".pt", ".pth" };
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (heft_str_ends(file, suffixes[i]) && file.len > heft_lit(suffixes[i]).len)
            return true;
    return false;
}

/* Add the file of a tensor, or of a group. */
static heft_status add_entry(reader *r, heft_ix_shard_entry row)
{
    bool is_group = !HEFT_IS_LEAN && r->kind->names_groups;
    heft_vec *to = is_group ? &r->x->shard_groups : &r->x->shard_entries;
    row.file = without_dot(r->j.text);
    if (!heft_str_is_file_name(row.file))
        return heft_json_fail(&r->j, "tensor %q: the file name %q must be a single path component",
                              row.name, row.file);
    if (!r->kind->is_own(row.file))
        return heft_error_set(r->x->err, HEFT_E_UNSUPPORTED, row.at,
                              "tensor %q: %q is not the name of a %s file, and all files of a "
                              "model must have the same format",
                              row.name, row.file, r->kind->title);
    if (!heft_vec_add(&r->x->mem, to, &row, sizeof row))
        return heft_error_no_memory(r->x->err, "for the weight_map");
    return HEFT_OK;
}

/* Add the files of a group, which are a text or a list of texts. */
static heft_status add_group(reader *r, heft_ix_shard_entry row)
{
    heft_json_kind k = heft_json_next(&r->j);
    bool is_list = k == HEFT_JSON_ARRAY;
    while (row.name.len && *row.name.ptr == '/')
        row.name = (heft_str){ row.name.ptr + 1, row.name.len - 1 };
    if (is_list)
        k = heft_json_next(&r->j);
    do {
        if (k != HEFT_JSON_STRING)
            return heft_json_fail(&r->j, "%q: the name of its file is not a string", row.name);
        HEFT_TRY(add_entry(r, row));
        k = is_list ? heft_json_next(&r->j) : HEFT_JSON_ARRAY_END;
    } while (k != HEFT_JSON_ARRAY_END);
    return r->j.st;
}

static heft_status read_map(reader *r)
{
    heft_json_kind k = heft_json_next(&r->j);
    if (r->has_map)
        return heft_json_fail(&r->j, "the index has two members \"weight_map\"");
    r->has_map = true;
    if (k != HEFT_JSON_OBJECT)
        return heft_json_fail(&r->j, "the weight_map is not an object");
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_KEY) {
        heft_ix_shard_entry row = { .name = r->j.text };
        row.at = r->j.base + (uint64_t)(r->j.token - r->j.start);
        if (!HEFT_IS_LEAN && r->kind->names_groups) {
            HEFT_TRY(add_group(r, row));
            continue;
        }
        if (heft_json_next(&r->j) != HEFT_JSON_STRING)
            return heft_json_fail(&r->j, "tensor %q: the name of its file is not a string",
                                  row.name);
        HEFT_TRY(add_entry(r, row));
    }
    return r->j.st;
}

static bool file_below(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_ix_shard_entry *rows = ctx;
    return heft_str_order(rows[a].file, rows[b].file) < 0;
}

/* Add each file once, sorted by name. */
static heft_status add_files(heft_index *x, const heft_vec *entries)
{
    heft_ix_shard_entry *rows = entries->ptr;
    uint32_t n = entries->len;
    size_t bytes = (2 * (size_t)n + 1) * sizeof(uint32_t);
    uint32_t *ids = heft_mem_alloc(&x->mem, bytes);
    if (!ids)
        return heft_error_no_memory(x->err, "for the weight_map");
    heft_sort_numbers(ids, n, file_below, rows);
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < n && !st; i++) {
        heft_ix_shard s = { rows[ids[i]].file, NULL, HEFT_UNKNOWN_LENGTH, true, NULL };
        bool is_repeated = i && heft_str_eq(rows[ids[i - 1]].file, s.label);
        if (!is_repeated && x->shards.len == HEFT_MAX_SHARDS)
            st = heft_error_plain(x->err, HEFT_E_LIMIT, "the model has more than %U files",
                                  (uint64_t)HEFT_MAX_SHARDS);
        else if (!is_repeated)
            st = heft_ix_shard_add(x, s, &rows[ids[i]].shard);
        else
            rows[ids[i]].shard = x->shards.len;
    }
    heft_mem_free(&x->mem, ids, bytes);
    return st;
}

heft_status heft_shard_index_parse(heft_window *in, heft_index *x,
                                   const heft_shard_index_kind *kind)
{
    heft_json_kind k;
    heft_cur c = heft_cur_whole(in, 0, in->size, "the index");
    heft_str text = { (const char *)heft_cur_take(&c, in->size), (size_t)in->size };
    if (c.st)
        return c.st;
    reader r = { .kind = kind, .x = x };
    size_t mark = mark_length(text.ptr, text.len);
    if (mark)
        heft_ix_note(x, HEFT_NOTE, kind->mark_rule, 0, HEFT_NONE,
                     HEFT_IS_SMALL ? "a byte order mark"
                                   : "the index begins with a byte order mark, which other "
                                     "programs refuse");
    text = (heft_str){ text.ptr + mark, text.len - mark };
    r.j = heft_json_open(text, mark, x->limits.depth, &x->arena, x->err);
    if (heft_json_next(&r.j) != HEFT_JSON_OBJECT)
        return heft_json_fail(&r.j, "the index is not a JSON object");
    while ((k = heft_json_next(&r.j)) == HEFT_JSON_KEY) {
        HEFT_TRY(heft_str_is(r.j.text, "metadata")     ? read_metadata(&r)
                 : heft_str_is(r.j.text, "weight_map") ? read_map(&r)
                                                       : heft_json_skip(&r.j, k));
    }
    if (k == HEFT_JSON_OBJECT_END)
        heft_json_next(&r.j);
    if (r.j.st)
        return r.j.st;
    if (!r.has_map)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0, "the index has no weight_map");
    x->is_shard_index = true;
    HEFT_TRY(heft_meta_unique(x, "the metadata of the index"));
    return add_files(x, !HEFT_IS_LEAN && kind->names_groups ? &x->shard_groups : &x->shard_entries);
}
