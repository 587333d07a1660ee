#include "values/show_json.h"

#include <stdlib.h>

#include "process/stdin_file.h"
#include "text/number_text.h"

/* Values are a list in row-major order, so that the list can be written while it is read. */
static heft_status put_values(json *j, slice_reader *r, heft_error *err)
{
    heft_status st = HEFT_OK;
    size_t skip, n;
    json_member_begin(j, "values", '[');
    for (uint64_t at = 0; at < r->slice.elements && !st && !j->o->os; at += n) {
        const void *data;
        st = slice_read(&data, &skip, &n, r, at, SLICE_RUN, err);
        for (size_t i = 0; i < n && !st; i++) {
            number value = number_at(r->type, data, skip + i);
            json_number(j, &value);
        }
    }
    json_end(j, ']');
    return st ? st : heft_file_is_unchanged(r->f, err);
}

static int put_document(outbuf *o, slice_reader *r, const char *path, uint32_t tensor)
{
    heft_error err;
    json j = json_open(o);
    json_member_str(&j, "file", str_of(stdin_name(path)));
    json_member_str(&j, "tensor", heft_tensor_at(r->f, tensor).name);
    json_member_dtype(&j, "dtype", r->type);
    json_member_shape(&j, "shape", r->slice.shape, r->slice.shape_rank);
    heft_status st = put_values(&j, r, &err);
    json_close(&j);
    return st ? say_error(path, &err) : CODE_DONE;
}

int show_json(outbuf *o, const session *s, const model_view *v, const char *path, uint32_t tensor,
              const char *slice_text, heft_dtype as)
{
    slice_reader *r = malloc(sizeof *r);
    if (!r)
        return say_status(HEFT_E_NOMEM, path, "no memory for a buffer");
    int code = slice_reader_open(r, s, v, path, tensor, slice_text, as);
    if (!code && number_kind_of(r->type) == NUMBER_NONE)
        code = say_status(HEFT_E_UNSUPPORTED, path, "elements of %s cannot be shown",
                          dtype_name(r->type));
    if (!code)
        code = put_document(o, r, path, tensor);
    slice_reader_close(r);
    free(r);
    return code;
}
