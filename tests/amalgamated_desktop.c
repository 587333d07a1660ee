/* amalgamated_desktop.c - open a model by its path and convert it, with the library or with
 * heft.c.  HEADER is heft/all.h or heft.h.
 *
 * usage: amalgamated_desktop MODEL OUT; prints facts of both. */
#include HEADER
#include <stdio.h>

enum { MAX_TENSORS = 64 };

static heft_status convert(const heft_file *f, const char *out, heft_error *err)
{
    heft_sink *sink;
    heft_status st = heft_sink_open_file(&sink, out, HEFT_SINK_REPLACE, err);
    return st ? st : heft_file_convert(f, heft_format_for_path(out), sink, NULL, err);
}

static heft_status print_hash(const heft_file *f, heft_error *err)
{
    static heft_hash hashes[MAX_TENSORS];
    heft_hash hash;
    heft_status st = heft_file_hash(&hash, hashes, f, NULL, NULL, err);
    for (size_t i = 0; i < sizeof hash.bytes && !st; i++)
        printf("%02x", hash.bytes[i]);
    printf("\n");
    return st;
}

static heft_status use_store(heft_file *take, heft_error *err)
{
    heft_params *store;
    heft_param lent;
    heft_id128 space, key;
    heft_status st = heft_params_open(&store, NULL, err);
    if (st) {
        heft_file_close(take);
        return st;
    }
    st = heft_params_add(&space, store, take, err);
    key = heft_params_key_at(store, 0);
    if (!st)
        st = heft_params_acquire(&lent, store, key, err);
    if (!st) {
        printf("parameter of %lu bytes\n", (unsigned long)lent.bytes);
        heft_params_release(store, key);
    }
    heft_params_close(store);
    return st;
}

int main(int argc, char **argv)
{
    heft_file *f;
    heft_error err;
    heft_status st = argc == 3 ? heft_file_open(&f, argv[1], NULL, &err) : HEFT_E_ARGUMENT;
    if (st || heft_tensor_count(f) > MAX_TENSORS)
        return 2;
    printf("%u tensors, mapped: %d\n", (unsigned)heft_tensor_count(f), heft_file_is_mapped(f));
    st = convert(f, argv[2], &err);
    if (!st)
        st = print_hash(f, &err);
    if (st)
        heft_file_close(f);
    else
        st = use_store(f, &err);
    if (st)
        printf("error: %s\n", err.message);
    return st != HEFT_OK;
}
