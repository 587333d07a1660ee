/* pickle_allowed.h - the names that a pickle of weights may import, and what it may do with each.
 */
#ifndef HEFT_PICKLE_ALLOWED_H
#define HEFT_PICKLE_ALLOWED_H
#include <heft/heft.h>

/* The arguments that a call must have.  A name that is called in another way is a finding. */
typedef enum heft_pickle_rule {
    HEFT_CALL_ANY,          /* no argument makes the call harmful */
    HEFT_CALL_NEVER,        /* a type that is only passed to other functions */
    HEFT_CALL_ENUM,         /* (number); getattr(class, "MEMBER") is allowed, too */
    HEFT_CALL_IDENTITY,     /* (value, …), which is the result: a text or a function, perhaps */
    HEFT_CALL_OUTER,        /* like CALL_ANY; getattr(class, "ProcessGroupState") is allowed, too */
    HEFT_CALL_GETATTR,      /* (class of CALL_ENUM or CALL_OUTER, name of a member) */
    HEFT_CALL_ENCODE,       /* (text, "latin1"): other codecs return text or unpack bytes */
    HEFT_CALL_BYTES,        /* () or (bytes or text, …), not a number of bytes to reserve */
    HEFT_CALL_FACTORY,      /* () or (a type of Python itself, …) */
    HEFT_CALL_REBUILD,      /* (function of CALL_ANY in torch._utils, type, arguments, …) */
    HEFT_CALL_DTYPE,        /* (simple type, False, True); its state is checked, too */
    HEFT_CALL_RECONSTRUCT,  /* (numpy.ndarray, shape, one letter); its state is checked, too */
    HEFT_CALL_SCALAR,       /* (element type without objects, bytes) */
    HEFT_CALL_FROM_BUFFER,  /* (bytes, element type without objects, …) */
    HEFT_CALL_ARRAY_WRAPPER /* (); its state says how many bytes joblib skips after it */
} heft_pickle_rule;

typedef struct heft_pickle_allowed {
    const char *module;
    const char *names; /* each name is preceded and followed by a space */
    heft_pickle_rule rule;
} heft_pickle_allowed;

/* Return the row of the exact name, or NULL.  With is_script, names of TorchScript are allowed. */
const heft_pickle_allowed *heft_pickle_allow(heft_str module, heft_str name, bool is_script);

#endif
