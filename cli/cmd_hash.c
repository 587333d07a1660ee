/* cmd_hash.c - `heft hash`: content digests of every tensor and of the model. */
#include <stdlib.h>
#include <unistd.h>

#include "checks.h"
#include "model.h"
#include "opt.h"
#include "progress_line.h"
#include "stdin_file.h"

static void print_text(outbuf *o, const heft_file *f, const heft_hash *model,
                       const heft_hash *tensors)
{
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        out_hex(o, tensors[i].bytes, sizeof tensors[i].bytes);
        out_text(o, "  ");
        out_name(o, heft_tensor_at(f, i).name);
        out_char(o, '\n');
    }
    out_hex(o, model->bytes, sizeof model->bytes);
    out_text(o, "  (model)\n");
}

static void print_json(outbuf *o, const heft_file *f, const char *path, const heft_hash *model,
                       const heft_hash *tensors)
{
    json j = json_open(o);
    json_member_str(&j, "file", str_of(stdin_name(path)));
    json_member_str(&j, "format", str_of(heft_format_name(heft_file_format(f))));
    json_member_hex(&j, "model", model->bytes, sizeof model->bytes);
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

static int hash(const heft_file *f, const char *path, bool as_json)
{
    heft_error err;
    heft_hash model, *tensors = malloc(((size_t)heft_tensor_count(f) + 1) * sizeof *tensors);
    if (!tensors)
        return say_status(HEFT_E_NOMEM, path, "no memory for the digests");
    progress p;
    progress_begin(&p, path);
    heft_status st = heft_file_hash(&model, tensors, f, progress_step, &p, &err);
    progress_end(&p);
    int code = st ? say_error(path, &err) : CODE_DONE;
    if (!st) {
        outbuf o;
        out_open(&o, STDOUT_FILENO);
        if (as_json)
            print_json(&o, f, path, &model, tensors);
        else
            print_text(&o, f, &model, tensors);
        code = out_end(&o, code);
    }
    free(tensors);
    return code;
}

int cmd_hash(int argc, char **argv)
{
    bool as_json = false;
    const opt options[] = {
        { "json", 0, OPT_FLAG, &as_json, NULL, "print one JSON document" },
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
    model_settings.check_parts = true;
    code = model_open_whole(&f, args.item[0]);
    if (!code)
        code = hash(f, args.item[0], as_json);
    heft_file_close(f);
    return code;
}
