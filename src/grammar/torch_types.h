/* torch_types.h - the element types of PyTorch, and the classes of storages that hold them. */
#ifndef HEFT_TORCH_TYPES_H
#define HEFT_TORCH_TYPES_H
#include <heft/heft.h>

typedef struct heft_torch_type {
    const char *dtype;   /* torch.DTYPE */
    const char *storage; /* torch.STORAGE, or NULL without a class */
    heft_dtype type;     /* HEFT_UNTYPED: unknown to Heft */
    bool keeps_name;     /* `type` is only similar: stored_dtype keeps the name */
    uint8_t bytes;       /* size of an element in a storage; 0: not known */
    bool is_quantized;   /* the integers need a scale and a zero point */
} heft_torch_type;

enum { HEFT_TORCH_TYPES = 30 };
extern const heft_torch_type heft_torch_types[HEFT_TORCH_TYPES];

/* Return the bytes of an element in storages of a class, or 0 if the class is not known. */
uint32_t heft_torch_storage_bytes(heft_str class_name);

#endif
