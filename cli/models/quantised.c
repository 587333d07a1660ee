#include "models/quantised.h"

#include <heft/companion.h>
#include <heft/scheme.h>

#include <string.h>

#include "models/beside.h"
#include "models/model.h"
#include "process/textfile.h"

/* Settings of a quantised model, in the folder of the file too: those of transformers and MLX come
 * first. */
static int read_settings(heft_settings **out, const char *path, bool asks_server)
{
    static const char *const names[] = { "config.json", "quantize_config.json", "quant_config.json",
                                         "hf_quant_config.json" };
    int code = CODE_DONE;
    bool is_near = !stdin_is(path) && (asks_server || !heft_is_url(path));
    *out = NULL;
    for (size_t i = 0; is_near && i < sizeof names / sizeof *names && !code && !*out; i++) {
        code = settings_beside(out, path, names[i], false);
        if (*out && !heft_settings_are_quantised(*out)) {
            heft_settings_close(*out);
            *out = NULL;
        }
    }
    return code;
}

int quantised_has_settings(bool *out, const char *path)
{
    heft_settings *settings;
    int code = read_settings(&settings, path, false);
    *out = settings != NULL;
    heft_settings_close(settings);
    return code;
}

static int open_schemes(heft_schemes **out, const heft_file *f, const char *path, bool asks_server)
{
    heft_error err;
    heft_settings *settings;
    *out = NULL;
    int code = read_settings(&settings, path, asks_server);
    if (!code && heft_schemes_open(out, f, settings, &err))
        code = say_error(path, &err);
    heft_settings_close(settings);
    return code;
}

int quantised_open(heft_schemes **out, const heft_file *f, const char *path)
{
    return open_schemes(out, f, path, false);
}

int quantised_open_to_convert(heft_schemes **out, const heft_file *f, const char *path)
{
    return open_schemes(out, f, path, true);
}

const char *quantised_role(const heft_schemes *s, uint32_t stored, heft_quantised *of)
{
    uint32_t q = s && stored != HEFT_NONE ? heft_schemes_find(s, stored) : HEFT_NONE;
    if (q == HEFT_NONE)
        return NULL;
    *of = heft_schemes_at(s, q);
    for (uint32_t k = 0; k < of->part_count; k++) {
        heft_quantised_part p = heft_schemes_part_at(s, q, k);
        if (p.tensor == stored)
            return p.role;
    }
    return NULL;
}

/* ---- kinds ---- */

typedef struct kind { /* quantised tensors with the same scheme, bits and blocks */
    heft_quantised first;
    uint64_t tensors, parts, parameters;
    bool is_decoded; /* all of them: parameters is known */
} kind;

enum { MOST_KINDS = 16 };
typedef struct kinds {
    kind of[MOST_KINDS];
    uint32_t count;
    uint64_t others; /* tensors of further kinds */
} kinds;

static bool is_same_kind(const heft_quantised *a, const heft_quantised *b)
{
    return str_same(a->scheme, b->scheme) && str_same(a->variant, b->variant) &&
           a->bits == b->bits && a->has_block == b->has_block &&
           !memcmp(a->block, b->block, sizeof a->block);
}

/* The numbers that are decoded are in the last shard of the file. */
bool quantised_is_decoded(const heft_file *decoded, uint32_t tensor)
{
    uint32_t part = heft_part_find(decoded, tensor, HEFT_STR("data"));
    return part != HEFT_NONE && heft_part_at(decoded, part).shard == heft_shard_file_count(decoded);
}

/* Add a quantised tensor to its kind. */
static void add_to_kind(kind *k, const heft_quantised *q, const heft_file *decoded)
{
    uint32_t tensor = decoded ? heft_tensor_find(decoded, q->name) : HEFT_NONE;
    bool is_decoded = tensor != HEFT_NONE && quantised_is_decoded(decoded, tensor);
    k->is_decoded = is_decoded && (k->is_decoded || !k->tensors);
    k->tensors++;
    k->parts += q->part_count;
    if (!k->is_decoded)
        return;
    heft_tensor t = heft_tensor_at(decoded, tensor);
    k->parameters += tensor_elements(&t);
}

static void count_kinds(kinds *out, const heft_schemes *s, const heft_file *decoded)
{
    *out = (kinds){ .count = 0 };
    for (uint32_t i = 0; i < heft_schemes_count(s); i++) {
        heft_quantised q = heft_schemes_at(s, i);
        uint32_t k = 0;
        while (k < out->count && !is_same_kind(&out->of[k].first, &q))
            k++;
        if (k == MOST_KINDS) {
            out->others++;
            continue;
        }
        if (k == out->count)
            out->of[out->count++].first = q;
        add_to_kind(&out->of[k], &q, decoded);
    }
}

/* ---- labels ---- */

/* Return what the scale belongs to, where a scheme has several kinds. */
static const char *scale_word(const heft_quantised *q)
{
    if (!q->has_block)
        return "";
    if (!q->block[0] && !q->block[1])
        return "-tensor";
    return q->block[0] == 1 && !q->block[1] ? "-channel" : "-block";
}

static bool has_digit(heft_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] >= '0' && s.ptr[i] <= '9')
            return true;
    return false;
}

void quantised_put_label(outbuf *o, const heft_quantised *q)
{
    bool is_bitsandbytes = str_same(q->scheme, str_of("bitsandbytes"));
    out_escaped(o, q->scheme);
    if (str_same(q->scheme, str_of("fp8"))) {
        out_text(o, scale_word(q));
    } else if (is_bitsandbytes && q->variant.len) {
        out_char(o, '-');
        out_escaped(o, q->variant);
    } else if (q->bits && !has_digit(q->scheme)) {
        out_format(o, "-%ubit", q->bits);
    }
}

/* ---- text ---- */

static void put_block(outbuf *o, const heft_quantised *q)
{
    unsigned long long rows = q->block[0], columns = q->block[1];
    if (!q->has_block)
        return;
    if (!rows && !columns)
        out_text(o, ", one scale");
    else if (rows == 1 && !columns)
        out_text(o, ", a scale for each row");
    else if (rows == 1)
        out_format(o, ", groups of %llu", columns);
    else if (rows && columns)
        out_format(o, ", blocks of %llux%llu", rows, columns);
    else
        out_format(o, ", blocks of %llu %s", rows ? rows : columns, rows ? "rows" : "columns");
}

static void put_kind(outbuf *o, const kind *k)
{
    const heft_quantised *q = &k->first;
    out_escaped(o, q->scheme);
    if (q->variant.len) {
        out_text(o, " (");
        out_escaped(o, q->variant);
        out_char(o, ')');
    }
    if (q->bits)
        out_format(o, ", %u bits", q->bits);
    put_block(o, q);
    out_format(o, " (%llu tensor%s of ", (unsigned long long)k->tensors,
               k->tensors == 1 ? "" : "s");
    if (k->parts % k->tensors == 0)
        out_format(o, "%llu parts)", (unsigned long long)(k->parts / k->tensors));
    else
        out_format(o, "%llu parts together)", (unsigned long long)k->parts);
    if (k->is_decoded) {
        out_text(o, ", ");
        out_count(o, k->parameters);
        out_text(o, k->parameters == 1 ? " parameter" : " parameters");
    }
    out_char(o, '\n');
}

void quantised_print(outbuf *o, const heft_schemes *s, const heft_file *decoded)
{
    kinds all;
    count_kinds(&all, s, decoded);
    for (uint32_t i = 0; i < all.count; i++) {
        out_format(o, "%-11s ", i ? "" : "Quantised");
        put_kind(o, &all.of[i]);
    }
    if (all.others)
        out_format(o, "%-11s ... and %llu tensors of other kinds\n", "",
                   (unsigned long long)all.others);
}

void quantised_json_scheme(json *j, const heft_quantised *q)
{
    json_member_str(j, "scheme", q->scheme);
    if (q->variant.len)
        json_member_str(j, "variant", q->variant);
    if (q->bits)
        json_member_u64(j, "bits", q->bits);
    if (q->has_block)
        json_member_shape(j, "block", q->block, 2);
}

void quantised_json(json *j, const heft_schemes *s, const heft_file *decoded)
{
    kinds all;
    count_kinds(&all, s, decoded);
    if (!all.count)
        return;
    json_member_begin(j, "quantised", '[');
    for (uint32_t i = 0; i < all.count; i++) {
        json_begin(j, '{');
        quantised_json_scheme(j, &all.of[i].first);
        json_member_u64(j, "tensors", all.of[i].tensors);
        json_member_u64(j, "parts", all.of[i].parts);
        if (all.of[i].is_decoded)
            json_member_u64(j, "parameters", all.of[i].parameters);
        json_end(j, '}');
    }
    json_end(j, ']');
}
