/* burn_training.c - prepare a model for training with Burn.
 *
 *     cc -std=c11 burn_training.c -o burn_training $(pkg-config --cflags --libs heft)
 *     ./burn_training IN MODEL.bpk OPTIMIZER.bpk
 *
 * Converts IN, of any format, to a Burnpack with an id for every parameter, and writes the record
 * of an Adam optimizer before the first step: two moments of zeros for each parameter. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <heft/heft.h>
#include <heft/params.h>
#include <heft/write.h>

/* ---- the model ---- */

/* Keep an existing id; otherwise make a new one as Burn does. */
static bool give_id(void *ctx, const heft_tensor *t, heft_identity *id)
{
    heft_error *failed = ctx;
    (void)t;
    if (id->has & HEFT_HAS_PARAM_ID || failed->status || heft_param_id_new(&id->param_id, failed))
        return false;
    id->has |= HEFT_HAS_PARAM_ID;
    return true;
}

static heft_status write_model(const heft_file *in, const char *path, heft_error *err)
{
    heft_sink *sink;
    heft_error failed = { .status = HEFT_OK };
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.identify = give_id;
    opt.ctx = &failed;
    heft_status st = heft_sink_open_file(&sink, path, 0, err);
    if (!st)
        st = heft_file_convert(in, heft_format_find(HEFT_STR("burnpack")), sink, &opt, err);
    if (st || !failed.status)
        return st;
    *err = failed;
    remove(path); /* the file has parameters without ids */
    return failed.status;
}

/* ---- the optimizer ---- */

static heft_status add_scalar(heft_writer *w, uint64_t id, const char *field, uint64_t number,
                              heft_error *err)
{
    char key[64];
    snprintf(key, sizeof key, "burn.scalars.%" PRIu64 ".%s", id, field);
    heft_value v = { .kind = HEFT_KIND_UINT, .key = heft_str_from(key), .as.u = number };
    return heft_writer_add_meta(w, v, err);
}

/* Declare the record of a parameter: path, rank, number of steps, and two moments. */
static heft_status declare_moments(heft_writer *w, const heft_tensor *t, uint64_t id,
                                   heft_error *err)
{
    static const char *const fields[] = { "momentum.moment_1", "momentum.moment_2" };
    char name[64];
    uint32_t part;
    snprintf(name, sizeof name, "%" PRIu64, id);
    heft_value path = { .kind = HEFT_KIND_STR, .key = heft_str_from(name), .as.s = t->name };
    heft_status st = heft_writer_add_meta(w, path, err);
    if (!st)
        st = add_scalar(w, id, "__rank", t->rank, err);
    if (!st)
        st = add_scalar(w, id, "momentum.time", 0, err);
    for (int i = 0; i < 2 && !st; i++) {
        snprintf(name, sizeof name, "%" PRIu64 ".%s", id, fields[i]);
        st = heft_writer_add_dense(&part, w, heft_str_from(name), t->dtype, t->dims, t->rank, err);
    }
    return st;
}

/* Get the parameter id of a tensor; false if the tensor has none. */
static bool param_id(uint64_t *id, const heft_file *f, uint32_t tensor)
{
    heft_value v;
    heft_str key = HEFT_STR("burn.param_id");
    for (uint32_t i = 0, n = heft_attribute_count(f, tensor); i < n; i++) {
        v = heft_attribute_at(f, tensor, i);
        if (v.kind == HEFT_KIND_UINT && v.key.len == key.len &&
            !memcmp(v.key.ptr, key.ptr, key.len)) {
            *id = v.as.u;
            return true;
        }
    }
    return false;
}

static heft_status declare_all(heft_writer *w, const heft_file *model, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (uint32_t t = 0; t < heft_tensor_count(model) && !st; t++) {
        heft_tensor tensor = heft_tensor_at(model, t);
        uint64_t id;
        if (param_id(&id, model, t))
            st = declare_moments(w, &tensor, id, err);
    }
    return st ? st : heft_writer_begin(w, err);
}

static heft_status write_zeros(heft_writer *w, const heft_file *model, heft_error *err)
{
    static const char zeros[1 << 16];
    heft_status st = HEFT_OK;
    uint32_t part = 0;
    for (uint32_t t = 0; t < heft_tensor_count(model); t++)
        for (uint64_t id, i = 0; param_id(&id, model, t) && i < 2; i++, part++)
            for (uint64_t left = heft_tensor_bytes(model, t), n; left && !st; left -= n) {
                n = left < sizeof zeros ? left : sizeof zeros;
                st = heft_writer_write(w, part, zeros, (size_t)n, err);
            }
    return st;
}

/* The writer derives the ids of the moments from the names, which begin with the id. */
static heft_status write_optimizer(const heft_file *model, const char *path, heft_error *err)
{
    heft_sink *sink;
    heft_writer *w;
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    opt.version = "0.22";
    heft_status st = heft_sink_open_file(&sink, path, 0, err);
    if (!st)
        st = heft_writer_open(&w, heft_format_find(HEFT_STR("burnpack")), sink, &opt, err);
    if (st)
        return st;
    st = declare_all(w, model, err);
    if (!st)
        st = write_zeros(w, model, err);
    if (!st)
        return heft_writer_finish(w, err);
    heft_writer_discard(w);
    return st;
}

int main(int argc, char **argv)
{
    heft_file *in = NULL, *model = NULL;
    heft_error err;
    if (argc != 4) {
        fputs("usage: burn_training IN MODEL.bpk OPTIMIZER.bpk\n", stderr);
        return 2;
    }
    int failed = heft_file_open(&in, argv[1], NULL, &err) || write_model(in, argv[2], &err) ||
                 heft_file_open(&model, argv[2], NULL, &err) ||
                 write_optimizer(model, argv[3], &err);
    if (failed)
        fprintf(stderr, "%s: %s\n", argv[1], err.message);
    heft_file_close(model);
    heft_file_close(in);
    return failed;
}
