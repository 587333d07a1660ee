/* scan_npy.c - npy files, which may follow each other: numpy.load() reads one after the other.
 *
 * NumPy writes an array of objects as a pickle.  Programs write the type as "|O"; the header is a
 * text of Python, in which the letter may be written in other ways, too.  The data are therefore
 * looked at in any case. */
#include "base/text.h"
#include "scan/scan.h"

static bool has_objects(const heft_scan_piece *p, uint64_t data)
{
    static const char *const signs[] = { "O'", "O\"", "O,", "O8", "O4", "object", "\\" };
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (heft_str_seek(p->bytes, p->bytes + data, signs[i], heft_lit(signs[i]).len))
            return true;
    return false;
}

/* Return the offset after an array.  A pickle, as which objects are stored, has its own followers;
 * after an array of unknown length, the next header is searched for. */
static uint64_t end_of_array(heft_scan *s, const heft_scan_piece *p, uint64_t data)
{
    uint64_t end = 0;
    if (heft_scan_npy_end(&end, p->bytes, p->size))
        return end && end < p->size ? end : p->size;
    const uint8_t *found = heft_str_seek(p->bytes + data, p->bytes + p->size, "\x93NUMPY", 6);
    end = found ? (uint64_t)(found - p->bytes) : p->size;
    if (heft_scan_charge(s, p, end - data) && data < p->size)
        heft_scan_unreadable(s, p,
                             "is an array of unknown length: what follows it was not "
                             "searched");
    return end;
}

/* Scan the data of an array, unless they are numbers, which no loader takes for a pickle. */
static heft_status scan_array(heft_scan *s, const heft_scan_piece *p, uint64_t data)
{
    heft_scan_piece rest = *p;
    uint64_t end;
    if (heft_scan_npy_end(&end, p->bytes, p->size) && end)
        return HEFT_OK;
    rest.bytes += data;
    rest.size -= data;
    rest.at += data;
    return heft_scan_pickles(s, &rest, has_objects(p, data));
}

heft_status heft_scan_npy(heft_scan *s, const heft_scan_piece *p, uint64_t data)
{
    heft_scan_piece next = *p;
    heft_status st = HEFT_OK;
    for (; data && !st && heft_scan_charge(s, p, data);
         data = heft_scan_npy_data(next.bytes, next.size)) {
        st = scan_array(s, &next, data);
        uint64_t end = end_of_array(s, &next, data);
        next.bytes += end;
        next.size -= end;
        next.at += end;
    }
    return st || !next.size ? st : heft_scan_add(s, &next);
}
