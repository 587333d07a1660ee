/* decoded_bytes.c - reads a decoded tensor by bytes, where a reader knows no elements. */
#include "base/checked_math.h"
#include "scheme/encoding.h"

heft_status heft_decoder_read_bytes(heft_decoder *r, heft_dtype as, uint64_t from, uint8_t *buf,
                                    size_t len)
{
    uint32_t size = heft_dtype_size(as);
    heft_status st = HEFT_OK;
    while (len && !st) {
        uint64_t element = heft_div(from, size);
        size_t skip = (size_t)(from - element * size), whole = skip ? 0 : len / size;
        size_t n = whole * size;
        uint8_t cut[8];
        st = heft_decoder_read(r, element, whole ? whole : 1, as, whole ? buf : cut);
        if (!whole) {
            n = size - skip < len ? size - skip : len;
            memcpy(buf, cut + skip, n);
        }
        buf += n;
        from += n;
        len -= n;
    }
    return st;
}
