/* fuzz_convert.c - fuzzes conversion: an input that opens is written in every format; the output
 * opens, has no faults, and has the same tensors if no loss was reported. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static const heft_limits limits = { .size = sizeof limits, .memory = 64 << 20, .tensors = 1 << 12 };
enum { MAX_PAYLOAD = 1 << 20 }; /* bytes of all tensors; shared bytes count for each tensor */

/* Count losses.  A note about a tensor means that its form changes, so that it reads back
 * differently. */
static void count_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                       const char *text)
{
    uint32_t *losses = ctx;
    fuzz_use(strlen(rule) + strlen(text) + tensor.len);
    *losses += severity != HEFT_NOTE || tensor.ptr;
}

static bool is_small(const heft_file *f)
{
    uint64_t total = 0;
    for (uint32_t id = 0; id < heft_tensor_count(f) && total <= MAX_PAYLOAD; id++)
        total += heft_tensor_bytes(f, id) < MAX_PAYLOAD ? heft_tensor_bytes(f, id) : MAX_PAYLOAD;
    return total <= MAX_PAYLOAD;
}

/* Check the output; faults of the input may remain in the output. */
static void check_written(const heft_file *in, fuzz_bytes bytes, bool is_sound, bool is_same)
{
    heft_file *out = NULL;
    heft_verify_result result;
    heft_hash a, b;
    fuzz_require(!fuzz_open(&out, bytes.ptr, bytes.len, NULL));
    fuzz_require(!heft_file_verify(&result, out, NULL, NULL));
    fuzz_require(!is_sound || !result.faults);
    if (is_same) {
        size_t room = heft_tensor_count(in) + (size_t)1;
        heft_hash *tensors = malloc(room * sizeof *tensors);
        fuzz_require(tensors && heft_tensor_count(out) == heft_tensor_count(in));
        fuzz_require(!heft_file_hash(&a, tensors, in, NULL, NULL, NULL));
        fuzz_require(!heft_file_hash(&b, tensors, out, NULL, NULL, NULL));
        fuzz_require(!memcmp(a.bytes, b.bytes, sizeof a.bytes));
        free(tensors);
    }
    heft_file_close(out);
}

static void write_as(const heft_file *in, const heft_format *to, bool is_sound)
{
    fuzz_bytes bytes = { NULL, 0, 0 };
    uint32_t losses = 0;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.no_verify = true;
    opt.write = &write;
    write.allow_loss = true;
    write.on_loss = count_loss;
    write.loss_ctx = &losses;
    heft_status st = heft_file_convert(in, to, fuzz_sink(&bytes), &opt, NULL);
    fuzz_require(!is_sound || !st || st == HEFT_E_LOSSY || st == HEFT_E_LIMIT ||
                 st == HEFT_E_UNSUPPORTED);
    if (!st)
        check_written(in, bytes, is_sound, is_sound && !losses);
    free(bytes.ptr);
}

static bool verifies(const heft_file *f)
{
    heft_verify_result result;
    return !heft_file_verify(&result, f, NULL, NULL) && !result.faults;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_file *in = NULL;
    opt.limits = &limits;
    if (!fuzz_open(&in, data, size, &opt) && is_small(in)) {
        bool is_sound = verifies(in);
        for (size_t i = 0; i < heft_format_count(); i++)
            if (heft_format_caps(heft_format_at(i)) & HEFT_CAN_WRITE)
                write_as(in, heft_format_at(i), is_sound);
    }
    heft_file_close(in);
    return 0;
}
