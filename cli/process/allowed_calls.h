/* allowed_calls.h - the system calls that commands need. */
#ifndef HEFT_CLI_ALLOWED_CALLS_H
#define HEFT_CLI_ALLOWED_CALLS_H
#include <linux/unistd.h>
#include <stddef.h>
#include <stdint.h>

/* The text of a call's number: "0", or "(0 + 1)". The headers of a processor define the calls that
 * it has; of other calls the text is the name of the undefined macro. */
#define CALL_TEXT(number)   #number
#define CALL_NUMBER(number) CALL_TEXT(number)
#define CALL(name)          CALL_NUMBER(__NR_##name)

enum { CALL_CONDITIONS = 3, CALL_VALUES = 16 };

/* An argument, without the ignored bits, has one of the values. The kernel reads 32 bits of every
 * argument that is compared here, so only these are compared. */
typedef struct call_condition {
    uint32_t argument, ignored;
    size_t n;
    uint32_t values[CALL_VALUES];
} call_condition;
#define CALL_IS(...)                                        \
    sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), \
    {                                                       \
        __VA_ARGS__                                         \
    }

/* A call for which all conditions hold is allowed, or fails with `error`. */
typedef struct call_rule {
    const char *call;
    int error;
    size_t conditions;
    call_condition when[CALL_CONDITIONS];
} call_rule;

/* Return the number of a call; -1 if this processor has no such call. */
int call_number(const char *text);

/* Calls that are allowed with any arguments; NULL ends the list. */
extern const char *const allowed_calls[];
/* Calls that clients of servers need, besides. */
extern const char *const allowed_client_calls[];

/* Calls that depend on arguments; the first rule that applies counts. A row without a call ends the
 * list. */
extern const call_rule checked_calls[];
extern const call_rule checked_duplicates[];
extern const call_rule checked_client_calls[];

#endif
