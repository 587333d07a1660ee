/* delta_places.h - where in the file of its base a delta changes bytes, for code that writes
 * files. */
#ifndef HEFT_DELTA_PLACES_H
#define HEFT_DELTA_PLACES_H
#include <heft/delta.h>

typedef struct heft_delta_places heft_delta_places;
typedef struct heft_delta_place { /* at most 65536 units in a range of the file */
    uint64_t at;                  /* offset in the file of the range */
    uint32_t length;              /* bytes of the range */
    uint32_t unit, count;         /* bytes of a unit; units that change */
    const uint16_t *positions;    /* ascending, from that of the first unit of the range on; NULL:
                                     each unit of the range changes */
    const uint8_t *old;           /* NULL if positions is: the bytes of the range */
    const uint8_t *new;           /* NULL if positions is: see heft_delta_places_put() */
} heft_delta_place;

/* Check that the changes fit in place, that the base is the one of the delta, and bring the changes
 * into memory.  The delta is borrowed until heft_delta_places_close(); the base may be closed. */
heft_status heft_delta_places_open(heft_delta_places **out, const heft_file *base,
                                   const heft_delta *d, const heft_apply_options *opt,
                                   heft_error *err);
/* Return the number of places, in ascending order of offsets. */
size_t heft_delta_places_count(const heft_delta_places *p);
heft_delta_place heft_delta_places_at(const heft_delta_places *p, size_t i);
/* Return the number of bytes that change: all of a tensor with exclusive ors. */
uint64_t heft_delta_places_bytes(const heft_delta_places *p);
/* Return the range of the file that has all places. */
heft_range heft_delta_places_range(const heft_delta_places *p);
/* Put the new units into the bytes of a range that has the old ones.  For places without positions
 * the calls come in ascending order. */
heft_status heft_delta_places_put(heft_delta_places *p, size_t i, uint8_t *bytes, heft_error *err);
/* Call fn(arg, i) for each i below n, on the threads of the host if heft_delta_places_put() allows
 * it. */
void heft_delta_places_run(const heft_delta_places *p, size_t n, void (*fn)(void *arg, size_t i),
                           void *arg);
void heft_delta_places_close(heft_delta_places *p);

#endif
