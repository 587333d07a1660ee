/* pickle_scan.h - reports what a pickle would import and call, without loading the pickle.
 *
 * Python calls only what a pickle has imported, so that the imports show every possible call.
 * Each import outside of a table of allowed names is a finding, and so is a call of an allowed name
 * with arguments that no writer of tensors uses.  Hostile pickles are expected: the time and the
 * memory of a scan are proportional to the bytes of the pickle.
 */
#ifndef HEFT_PICKLE_SCAN_H
#define HEFT_PICKLE_SCAN_H
#include "base/arena.h"

typedef enum heft_pickle_danger {
    HEFT_PICKLE_IMPORT,     /* a name outside of the table: module, name */
    HEFT_PICKLE_ARGUMENTS,  /* a name of the table, used in a way that no writer uses */
    HEFT_PICKLE_HIDDEN,     /* an import with a name that only loading would compute */
    HEFT_PICKLE_EXTENSION,  /* an import by a number of the extension registry */
    HEFT_PICKLE_FOREIGN_ID, /* a persistent id that is not the id of a PyTorch storage */
    HEFT_PICKLE_BROKEN      /* Python would fail here, after all opcodes before have run */
} heft_pickle_danger;

typedef struct heft_pickle_finding {
    heft_pickle_danger danger;
    uint64_t at;           /* offset of the opcode in the pickle */
    uint8_t opcode;        /* 0 if the pickle ends before an opcode */
    heft_str module, name; /* valid until the callback returns; not always UTF-8 */
    bool after_foreign_id; /* Python and PyTorch fail at a foreign id; other programs may go on */
} heft_pickle_finding;

typedef struct heft_pickle_scanner {
    heft_memory *memory;
    void (*found)(void *context, const heft_pickle_finding *finding);
    void *context;
    /* Called for each persistent id of a storage, and with 0 if the length of an element is
     * unknown; returns false if out of memory.  May be NULL. */
    bool (*storage)(void *context, heft_str key, uint32_t element_bytes);
    /* Called for each class of storages that is imported; may be NULL. */
    void (*storage_class)(void *context, uint32_t element_bytes);
    bool is_script; /* TorchScript resolves the modules below __torch__ in the archive */
    bool is_joblib; /* skip the bytes of arrays, which joblib stores between opcodes */
} heft_pickle_scanner;

typedef struct heft_pickle_scanned {
    uint64_t end;      /* offset after the last opcode read; more pickles may follow */
    uint64_t taken;    /* end of the bytes that a reader takes with the pickle, which may be more */
    bool is_cut;       /* the bytes end within the pickle */
    bool has_arrays;   /* joblib would skip bytes that Python takes for opcodes */
    bool uses_unknown; /* it calls or changes an object whose import is a finding */
} heft_pickle_scanned;

/* Scan one pickle at the start of the bytes.  HEFT_E_NOMEM is the only failure: damage is a
 * finding. */
heft_status heft_pickle_scan(heft_pickle_scanned *out, const heft_pickle_scanner *s,
                             const void *bytes, uint64_t size);

/* Return true if the name is known as a way to run programs or code, or to reach files and
 * networks.  Names outside of this list and of the table of allowed names are unknown. */
bool heft_pickle_is_dangerous(heft_str module, heft_str name);

#endif
