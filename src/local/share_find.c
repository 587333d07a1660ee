/* share_find.c - the number of a share, as text or from the engine that started the process. */
#include <heft/share.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Open MPI comes first, because under Slurm the variables of Slurm then describe the whole step. */
static const struct {
    const char *engine, *rank, *size;
} engines[] = {
    { "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
    { "MPICH", "PMI_RANK", "PMI_SIZE" },
    { "Slurm", "SLURM_PROCID", "SLURM_NTASKS" },
};

/* Read a decimal number of at most 9 digits; return the end, or NULL. */
static const char *read_number(uint32_t *out, const char *text)
{
    enum { MOST_DIGITS = 9 };
    size_t n = strspn(text, "0123456789");
    *out = 0;
    for (size_t i = 0; i < n && i < MOST_DIGITS; i++)
        *out = *out * 10 + (uint32_t)(text[i] - '0');
    return n && n <= MOST_DIGITS ? text + n : NULL;
}

static bool is_share(const heft_share *s)
{
    return s->number - 1 < s->count && s->count <= HEFT_SHARE_MAX_COUNT;
}

static heft_status find_engine(heft_share *out, heft_error *err)
{
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++) {
        const char *rank = getenv(engines[i].rank), *size = getenv(engines[i].size);
        if (!rank || !size)
            continue;
        const char *rank_end = read_number(&out->number, rank);
        const char *size_end = read_number(&out->count, size);
        out->number++; /* ranks count from 0 */
        if (rank_end && !*rank_end && size_end && !*size_end && is_share(out))
            return HEFT_OK;
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "%s=%s and %s=%s, the variables of %s, are no share of 1 to %U",
                                engines[i].rank, rank, engines[i].size, size, engines[i].engine,
                                (uint64_t)HEFT_SHARE_MAX_COUNT);
    }
    return heft_error_plain(err, HEFT_E_ARGUMENT,
                            "no engine has set its variables: OMPI_COMM_WORLD_RANK and "
                            "OMPI_COMM_WORLD_SIZE (Open MPI), PMI_RANK and PMI_SIZE (MPICH), "
                            "SLURM_PROCID and SLURM_NTASKS (Slurm)");
}

heft_status heft_share_find(heft_share *out, const char *text, heft_error *err)
{
    *out = (heft_share){ 0, 0 };
    if (!strcmp(text, "auto"))
        return find_engine(out, err);
    const char *end = read_number(&out->number, text);
    end = end && *end == '/' ? read_number(&out->count, end + 1) : NULL;
    if (end && !*end && is_share(out))
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_ARGUMENT,
                            "'%s' is no share: use I/N with I from 1 to N, or auto", text);
}
