/* fuzz.h - the interface between a fuzz target and the programs that drive the target, and helpers
 * that the targets share. */
#ifndef HEFT_FUZZ_H
#define HEFT_FUZZ_H
#include <stdint.h>

#include <heft/heft_ext.h>

/* ---- a target ------------------------------------------------------------------------------- */

/* The last bytes of an input make the choices of a target: formats, options, sizes.  Such a script
 * is read from first to last, again and again. */
typedef struct fuzz_script {
    const uint8_t *bytes;
    size_t len, at;
} fuzz_script;
uint32_t fuzz_next(fuzz_script *s); /* the next byte; 0 if the script is empty */
/* Return a choice for a name: the same for the same script, name and question. */
uint32_t fuzz_choice(const fuzz_script *s, heft_str name, uint32_t question);

typedef struct fuzz_target {
    void (*run)(const uint8_t *data, size_t size, fuzz_script *s);
    size_t script_bytes; /* size of the script after the data of an input */
    bool takes_models;   /* the data are a model file, so that checksums can be repaired */
} fuzz_target;
extern const fuzz_target fuzz_this; /* each target defines its own */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Abort if an invariant does not hold. */
void fuzz_require(bool holds);
/* Require that a failure sets the status and a line of text, in an error that was filled with
 * fuzz_no_error() before. */
void fuzz_require_error(heft_status st, const heft_error *err);
heft_error fuzz_no_error(void);
/* Keep the compiler from removing the computation of v. */
void fuzz_use(uint64_t v);

/* ---- memory --------------------------------------------------------------------------------- */

/* A host with one thread whose allocator counts bytes and fails on request. */
typedef struct fuzz_memory {
    heft_allocator al;
    heft_host host;
    uint64_t live, peak;
    uint32_t left; /* requests until a request fails */
    bool has_failed;
    void (*on_request)(void *ctx); /* called before each request; may be NULL */
    void *ctx;
} fuzz_memory;
/* left UINT32_MAX: requests do not fail. */
void fuzz_memory_init(fuzz_memory *m, uint32_t left);

/* ---- models --------------------------------------------------------------------------------- */

extern const heft_limits fuzz_limits;
enum { FUZZ_MAX_PAYLOAD = 256 << 10 }; /* bytes of all tensors; shared bytes count for each */

/* Open bytes; checksums that do not match do not prevent that.  opt may be NULL. */
heft_status fuzz_open(heft_file **out, const void *data, size_t size, const heft_open_options *opt);
/* Open a model with the host and small limits; NULL if the bytes are not a model, or if the tensors
 * exceed FUZZ_MAX_PAYLOAD. */
heft_file *fuzz_open_model(const heft_host *host, const void *data, size_t size);
bool fuzz_is_small(const heft_file *f);
/* Verify a file and return the number of faults; verification itself must succeed. */
uint32_t fuzz_faults(const heft_file *f);
/* Return true if the model is complete and verifies without faults and without odd values. */
bool fuzz_is_sound(const heft_file *f);
/* Return true if a stored checksum that is more than advisory does not match. */
bool fuzz_has_wrong_checksum(const heft_file *f);
/* Hash the model; false if the tensors cannot be decoded. */
bool fuzz_hash(heft_hash *out, const heft_file *f);
/* Require the same tensors in both files. */
void fuzz_require_same(const heft_file *a, const heft_file *b);
/* Read a part as a whole and in sections that the script chooses, and require the same bytes.  The
 * part may be one that cannot be read, or too large. */
void fuzz_require_sections(const heft_file *f, uint32_t part, fuzz_script *s);
/* Return a format that can be written, for any number. */
const heft_format *fuzz_writable(uint32_t number);
/* Return a format whose models may be several files, by any number. */
const heft_format *fuzz_splittable(uint32_t number);

/* ---- sinks ---------------------------------------------------------------------------------- */

typedef struct fuzz_bytes {
    uint8_t *ptr;
    size_t len, cap;
} fuzz_bytes;
/* Open a sink that appends to *to; the caller frees to->ptr. */
heft_sink *fuzz_sink(fuzz_bytes *to);
/* Open a sink that writes at offsets into *to, and requires that no byte is written twice or past
 * the reserved size. */
heft_sink *fuzz_sink_at(fuzz_bytes *to);

#endif
