/* gguf_back.h - texts while they are made from the metadata of a GGUF file. */
#ifndef HEFT_GGUF_BACK_H
#define HEFT_GGUF_BACK_H
#include "base/out.h"
#include "gguf/gguf_architectures.h"
#include "gguf/gguf_build.h"

struct heft_gguf_texts {
    const heft_file *f; /* while the texts are made */
    heft_memory mem;
    heft_arena arena;
    heft_str texts[HEFT_GGUF_TEXTS];
    const heft_gguf_architecture *architecture;
    const char *refusal;
    heft_error *err;
};

/* An object that is written. */
typedef struct heft_gguf_json {
    heft_gguf_texts *t;
    heft_out *out;
    bool has_members;
} heft_gguf_json;

/* Write a key of an object; the caller closes the object. */
void heft_gguf_put_key(heft_gguf_json *j, const char *key);
/* Find a number or flag at ARCHITECTURE.KEY. */
bool heft_gguf_find_number(double *out, const heft_gguf_texts *t, const char *key);

/* Write a text.  Called twice: to count, and to write. */
heft_status heft_gguf_put_config(heft_gguf_texts *t, heft_out *out);
heft_status heft_gguf_put_tokenizer(heft_gguf_texts *t, heft_out *out);
heft_status heft_gguf_put_tokenizer_config(heft_gguf_texts *t, heft_out *out);
/* Return why tokenizer.json cannot be made; NULL: it can. */
const char *heft_gguf_tokenizer_refusal(const heft_gguf_texts *t);

#endif
