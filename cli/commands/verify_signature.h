/* verify_signature.h - `heft verify --signature`: check a signature and the signed files. */
#ifndef HEFT_CLI_VERIFY_SIGNATURE_H
#define HEFT_CLI_VERIFY_SIGNATURE_H
#include "process/command_session.h"

typedef struct signature_request {
    const session *session;
    const char *model, *signature;
    const char *key, *authorities, *certificate; /* paths, or NULL */
    bool as_json;
} signature_request;

/* Check the signature; return the exit code. */
int verify_signature(const signature_request *r);

#endif
