/* cmd_hash.c - `heft hash`: content digests of every tensor and of the model. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"
#include "model.h"
#include "opt.h"
#include "progress_line.h"
#include "result_share.h"
#include "stdin_file.h"

/* model NULL: the model has no digest. */
static void print_text(outbuf *o, const heft_file *f, const heft_hash *model,
                       const heft_hash *tensors)
{
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        out_hex(o, tensors[i].bytes, sizeof tensors[i].bytes);
        out_text(o, "  ");
        out_name(o, heft_tensor_at(f, i).name);
        out_char(o, '\n');
    }
    if (!model)
        return;
    out_hex(o, model->bytes, sizeof model->bytes);
    out_text(o, "  (model)\n");
}

static void print_json(outbuf *o, const heft_file *f, const char *path, const heft_hash *model,
                       const heft_hash *tensors)
{
    json j = json_open(o);
    json_member_str(&j, "file", str_of(stdin_name(path)));
    json_member_str(&j, "format", str_of(heft_format_name(heft_file_format(f))));
    if (model)
        json_member_hex(&j, "model", model->bytes, sizeof model->bytes);
    else
        json_member_null(&j, "model");
    json_member_begin(&j, "tensors", '[');
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        json_line(&j);
        json_begin(&j, '{');
        json_member_str(&j, "name", heft_tensor_at(f, i).name);
        json_member_hex(&j, "digest", tensors[i].bytes, sizeof tensors[i].bytes);
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_close(&j);
}

/* ---- shares ---- */

enum { HASH_WORDS = HEFT_HASH_BYTES / 8 };

static void words_of(uint64_t out[HASH_WORDS], const heft_hash *h)
{
    for (size_t i = 0; i < HEFT_HASH_BYTES; i++)
        out[i / 8] = out[i / 8] << 8 | h->bytes[i];
}

static void hash_of(heft_hash *out, const uint64_t words[HASH_WORDS])
{
    for (size_t i = 0; i < HEFT_HASH_BYTES; i++)
        out->bytes[i] = (uint8_t)(words[i / 8] >> (56 - 8 * (i % 8)));
}

/* Compute the words of the share's tensors, and a line with CRCs. */
static int hash_rows(const result_share *r, uint32_t first, uint32_t count, uint64_t *words,
                     outbuf *crcs)
{
    heft_error err;
    progress p;
    heft_blob blob = { NULL, 0, NULL };
    heft_hash *hashes = malloc(((size_t)count + 1) * sizeof *hashes);
    uint32_t *ids = malloc(((size_t)r->rows + 1) * sizeof *ids);
    int code = hashes && ids ? CODE_DONE
                             : say_status(HEFT_E_NOMEM, r->path, "no memory for the digests");
    for (uint32_t i = 0; !code && i < r->rows; i++)
        ids[i] = i;
    progress_begin(&p, r->path);
    if (!code &&
        heft_share_hash(hashes, &blob, r->f, ids, r->rows, first, count, progress_step, &p, &err))
        code = say_error(r->path, &err);
    progress_end(&p);
    for (size_t i = 0; !code && i < count; i++)
        words_of(words + i * HASH_WORDS, &hashes[i]);
    out_bytes(crcs, blob.data, model_settings.no_verify ? 0 : blob.size);
    out_char(crcs, '\n');
    heft_blob_free(&blob);
    free(ids);
    free(hashes);
    return code;
}

/* Hash the tensors of a share and write the record. */
static int hash_share(result_share *r)
{
    uint32_t first, end;
    outbuf crcs;
    result_share_rows(r, r->share.number, r->share.count, &first, &end);
    uint64_t *words = calloc((size_t)(end - first) + 1, HASH_WORDS * sizeof *words);
    out_open(&crcs, -1);
    int code = words ? hash_rows(r, first, end - first, words, &crcs)
                     : say_status(HEFT_E_NOMEM, r->path, "no memory for the digests");
    if (!code)
        code = result_share_write(r, words, &crcs);
    out_free(&crcs);
    free(words);
    return code;
}

/* Content that cannot be read leaves the model without a digest; the tensors have theirs. */
static int end_model(heft_status st, const result_share *r, const heft_error *err, bool *has_model)
{
    bool is_left_out = st && err->rule && !strcmp(err->rule, "heft/left-out");
    *has_model = !st;
    return st && !is_left_out ? say_error(r->path, err) : CODE_DONE;
}

/* Read the records of all shares. */
static int join_shares(heft_hash *model, bool *has_model, heft_hash *tensors, const result_share *r)
{
    heft_error err;
    uint64_t *words = NULL;
    checks joined = { .is_share = true };
    for (uint32_t i = 0; i < r->rows && !joined.no_memory; i++)
        checks_add_tensor(&joined, r->f, i, false);
    int code = checks_begin(&joined, r->f, r->path);
    if (!code)
        code = result_share_join(r, &words, (checks *const[]){ &joined }, &r->path, 1);
    checks_close(&joined);
    for (uint32_t i = 0; !code && i < r->rows; i++)
        hash_of(&tensors[i], words + (size_t)i * HASH_WORDS);
    free(words);
    return code ? code : end_model(heft_hash_model(model, tensors, r->f, &err), r, &err, has_model);
}

/* Fill tensors and model from the records of all shares, or compute them. */
static int compute(heft_hash *model, bool *has_model, heft_hash *tensors, const result_share *r)
{
    heft_error err;
    progress p;
    if (r->join)
        return join_shares(model, has_model, tensors, r);
    progress_begin(&p, r->path);
    heft_status st = heft_file_hash(model, tensors, r->f, progress_step, &p, &err);
    progress_end(&p);
    return end_model(st, r, &err, has_model);
}

/* Say why the model has no digest. */
static int say_no_model(const result_share *r)
{
    heft_error err;
    heft_hash left_out;
    bool has_any;
    return heft_left_out_hash(&left_out, &has_any, r->f, &err) ? say_error(r->path, &err)
                                                               : CODE_DONE;
}

static int hash(result_share *r, bool as_json)
{
    const heft_file *f = r->f;
    const char *path = r->path;
    const selection all = { NULL, heft_tensor_count(f) };
    result_share_set_tensors(r, f, path, &all);
    int code = r->share.count || r->join ? result_share_open(r) : CODE_DONE;
    if (code || r->share.count)
        return code ? code : hash_share(r);
    heft_hash model, *tensors = malloc(((size_t)heft_tensor_count(f) + 1) * sizeof *tensors);
    if (!tensors)
        return say_status(HEFT_E_NOMEM, path, "no memory for the digests");
    bool has_model;
    code = compute(&model, &has_model, tensors, r);
    if (!code) {
        outbuf o;
        out_open(&o, STDOUT_FILENO);
        if (as_json)
            print_json(&o, f, path, has_model ? &model : NULL, tensors);
        else
            print_text(&o, f, has_model ? &model : NULL, tensors);
        code = out_end(&o, model_check_unchanged(f, path));
        code = code || has_model ? code : say_no_model(r);
    }
    free(tensors);
    return code;
}

int cmd_hash(int argc, char **argv)
{
    bool as_json = false;
    result_share r = { .command = "hash", .words = HASH_WORDS };
    const opt options[] = {
        { "json", 0, OPT_FLAG, &as_json, NULL, "print one JSON document" },
        result_share_option(&r, 0),
        result_share_option(&r, 1),
        result_share_option(&r, 2),
    };
    const opt_usage usage = {
        "hash",
        "FILE",
        "Prints a digest of every tensor and of the model, equal for equal tensors in any\n"
        "format. A tensor's digest covers element type, shape, layout and decoded bytes; the\n"
        "model's digest covers the sorted names and digests.",
        "heft hash model.zt",
        options,
        sizeof options / sizeof *options,
        1,
        1,
    };
    opt_args args;
    heft_file *f = NULL;
    int code;
    if (!opt_parse(&args, &code, &usage, argc, argv))
        return code;
    code = result_share_prepare(&r);
    if (code)
        return code;
    model_settings.check_parts = true;
    code = model_open_whole(&f, args.item[0]);
    r.f = f;
    r.path = args.item[0];
    if (!code)
        code = hash(&r, as_json);
    result_share_close(&r);
    heft_file_close(f);
    return code;
}
