/* fuzz_ranks.c - fuzzes the files of ranks of DeepSpeed, which are joined: the input is two streams
 * of PyTorch, one after the other, *_model_states.pt and *_optim_states.pt.  All ranks have the
 * same two files, of ZeRO-1 or of ZeRO-3, or a parameter has the second file.  An input with one
 * stream is all of these files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/check.h>

#include "fuzz_request.h"

enum { MAX_FILES = 12, NAME_BYTES = 64 };

typedef struct folder {
    heft_shard_folder shards;
    heft_folder listed;
    heft_folder_file files[MAX_FILES];
    char names[MAX_FILES][NAME_BYTES];
    fuzz_bytes states, optim;
} folder;

static heft_status open_file(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    const folder *d = ctx;
    const fuzz_bytes *b = strstr(name, "model_states") ? &d->states : &d->optim;
    return heft_source_open_memory(out, b->ptr, b->len, err);
}

static void add(folder *d, const char *format, unsigned rank)
{
    char *name = d->names[d->listed.count];
    if (d->listed.count == MAX_FILES)
        return;
    snprintf(name, NAME_BYTES, format, rank);
    d->files[d->listed.count++] = (heft_folder_file){ name, HEFT_FOLDER_SHARD };
}

/* Name the files; return the name of the one to open. */
static const char *list(folder *d, fuzz_script *s)
{
    bool is_cut = fuzz_next(s) % 2, is_universal = fuzz_next(s) % 4 == 0;
    unsigned ranks = 1 + fuzz_next(s) % 4;
    d->listed.files = d->files;
    for (unsigned r = 1; is_cut && r < ranks; r++)
        add(d, "zero_pp_rank_%u_mp_rank_00_model_states.pt", r);
    for (unsigned r = 0; !is_universal && r < ranks; r++)
        add(d, "zero_pp_rank_%u_mp_rank_00_optim_states.pt", r);
    if (is_universal)
        add(d, fuzz_next(s) % 2 ? "zero/w/fp32.pt" : "zero/embed.weight/fp32.pt", 0);
    return is_cut ? "zero_pp_rank_0_mp_rank_00_model_states.pt" : "mp_rank_00_model_states.pt";
}

static void convert(const heft_file *f, const heft_host *host, fuzz_script *s)
{
    fuzz_request r;
    fuzz_bytes bytes = { .ptr = NULL };
    heft_error err = fuzz_no_error();
    const heft_format *to = fuzz_writable(fuzz_next(s));
    fuzz_request_init(&r, host, to, s);
    if (fuzz_is_small(f))
        fuzz_use((uint64_t)heft_file_convert(f, to, fuzz_sink_at(&bytes), &r.opt, &err));
    free(bytes.ptr);
}

/* Return the offset of the second stream, which begins with the magic number; 0: there is none. */
static size_t second_stream(const uint8_t *data, size_t size)
{
    static const uint8_t magic[] = { 0x80, 2, 0x8A, 10, 'l', 0xFC, 0x9C, 'F', 0xF9 };
    for (size_t at = 1; at + sizeof magic <= size; at++)
        if (!memcmp(data + at, magic, sizeof magic))
            return at;
    return 0;
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    fuzz_memory m;
    folder d = { .listed = { .count = 0 } };
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    size_t cut = second_stream(data, size);
    heft_file *f = NULL;
    heft_error err = fuzz_no_error();
    fuzz_memory_init(&m, fuzz_next(s) % 4 ? UINT32_MAX : fuzz_next(s) | (fuzz_next(s) & 3) << 8);
    d.states = (fuzz_bytes){ (uint8_t *)(uintptr_t)data, cut ? cut : size, 0 };
    d.optim = (fuzz_bytes){ (uint8_t *)(uintptr_t)data + cut, size - cut, 0 };
    d.shards = (heft_shard_folder){
        .size = sizeof d.shards, .name = list(&d, s), .open = open_file, .ctx = &d
    };
    opt.host = &m.host;
    opt.limits = &fuzz_limits;
    opt.shards = &d.shards;
    opt.folder = &d.listed;
    if (!fuzz_open(&f, d.states.ptr, d.states.len, &opt)) {
        fuzz_use((uint64_t)heft_file_verify(NULL, f, NULL, &err)); /* memory may be missing */
        convert(f, &m.host, s);
    }
    heft_file_close(f);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 24, .takes_models = true };
