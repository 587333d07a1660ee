/* signature_read.c - reads a bundle: the verification material and the envelope (DSSE). */
#include "base/error.h"
#include "base/text.h"
#include "sign/signature.h"

/* ---- verification material ---- */

/* The bundle names one kind of material: two could name two signers. */
static heft_status begin_material(heft_member_reader *r, heft_json_kind first)
{
    if (first != HEFT_JSON_NULL && r->materials++)
        return heft_json_fail(&r->j, "the verification material is of two kinds");
    return HEFT_OK;
}

static heft_status read_hint(heft_member_reader *r, heft_json_kind first)
{
    return first == HEFT_JSON_NULL ? HEFT_OK : heft_read_text(&r->s->key_hint, r, first);
}

static heft_status read_public_key(heft_member_reader *r, heft_json_kind first)
{
    static const heft_member members[] = { { "hint", read_hint, false } };
    HEFT_TRY(begin_material(r, first));
    return first == HEFT_JSON_NULL ? HEFT_OK : heft_read_members(r, first, members, 1);
}

static heft_status read_certificate_bytes(heft_member_reader *r, heft_json_kind first)
{
    heft_str der;
    HEFT_TRY(heft_read_base64(&der, r, first));
    if (!heft_vec_add(&r->s->mem, &r->s->certificates, &der, sizeof der))
        return heft_error_no_memory(r->j.err, "for a certificate");
    return HEFT_OK;
}

static heft_status read_certificate(heft_member_reader *r, heft_json_kind first)
{
    static const heft_member members[] = { { "rawBytes", read_certificate_bytes, true } };
    return heft_read_members(r, first, members, 1);
}

static heft_status read_certificates(heft_member_reader *r, heft_json_kind first)
{
    return heft_read_items(r, first, read_certificate);
}

static heft_status read_chain(heft_member_reader *r, heft_json_kind first)
{
    static const heft_member members[] = { { "certificates", read_certificates, true } };
    HEFT_TRY(begin_material(r, first));
    return first == HEFT_JSON_NULL ? HEFT_OK : heft_read_members(r, first, members, 1);
}

static heft_status read_single(heft_member_reader *r, heft_json_kind first)
{
    HEFT_TRY(begin_material(r, first));
    return first == HEFT_JSON_NULL ? HEFT_OK : read_certificate(r, first);
}

static heft_status read_material(heft_member_reader *r, heft_json_kind first)
{
    static const heft_member members[] = {
        { "publicKey", read_public_key, false },
        { "certificate", read_single, false },
        { "x509CertificateChain", read_chain, false },
    };
    return heft_read_members(r, first, members, sizeof members / sizeof *members);
}

/* ---- the envelope ---- */

static heft_status read_payload(heft_member_reader *r, heft_json_kind first)
{
    r->payload_at = r->j.base + (uint64_t)(r->j.token - r->j.start);
    return heft_read_base64(&r->s->statement, r, first);
}

static heft_status read_payload_type(heft_member_reader *r, heft_json_kind first)
{
    return heft_read_constant(r, first, HEFT_PAYLOAD_TYPE, "payload type", HEFT_E_UNSUPPORTED);
}

static heft_status read_sig(heft_member_reader *r, heft_json_kind first)
{
    return heft_read_base64(&r->s->signature, r, first);
}

static heft_status read_signature(heft_member_reader *r, heft_json_kind first)
{
    static const heft_member members[] = { { "sig", read_sig, true } };
    if (r->signatures++)
        return heft_json_fail(&r->j, "the envelope has more than one signature");
    return heft_read_members(r, first, members, 1);
}

static heft_status read_signatures(heft_member_reader *r, heft_json_kind first)
{
    HEFT_TRY(heft_read_items(r, first, read_signature));
    if (!r->signatures)
        return heft_json_fail(&r->j, "the envelope has no signature");
    return HEFT_OK;
}

static heft_status read_envelope(heft_member_reader *r, heft_json_kind first)
{
    static const heft_member members[] = {
        { "payload", read_payload, true },
        { "payloadType", read_payload_type, true },
        { "signatures", read_signatures, true },
    };
    return heft_read_members(r, first, members, sizeof members / sizeof *members);
}

/* ---- the bundle ---- */

static heft_status read_media_type(heft_member_reader *r, heft_json_kind first)
{
    return heft_read_constant(r, first, HEFT_BUNDLE_TYPE, "media type", HEFT_E_UNSUPPORTED);
}

static heft_status read_other_content(heft_member_reader *r, heft_json_kind first)
{
    if (first != HEFT_JSON_NULL)
        return heft_json_fail(&r->j, "the bundle has a signature besides the envelope");
    return HEFT_OK;
}

static heft_status read_bundle(heft_signature *s, heft_str text, heft_error *err)
{
    static const heft_member members[] = {
        { "mediaType", read_media_type, true },
        { "verificationMaterial", read_material, true },
        { "dsseEnvelope", read_envelope, true },
        { "messageSignature", read_other_content, false },
    };
    heft_member_reader r = { .s = s };
    r.j = heft_json_open(text, 0, HEFT_JSON_DEPTH, &s->arena, err);
    HEFT_TRY(
        heft_read_members(&r, heft_json_next(&r.j), members, sizeof members / sizeof *members));
    if (heft_json_next(&r.j) != HEFT_JSON_END)
        return heft_json_fail(&r.j, "text follows the bundle");
    heft_status st = heft_statement_read(s, err);
    if (st)
        err->offset = r.payload_at; /* offsets in the decoded statement are none of the file */
    return st ? st : heft_signature_wrap(s, err);
}

heft_status heft_signature_read(heft_signature **out, heft_str text, const heft_host *host,
                                heft_error *err)
{
    heft_error own;
    heft_signature *s = NULL;
    err = heft_error_begin(err, &own);
    *out = NULL;
    heft_status st = heft_signature_open(&s, host, err);
    if (!st)
        st = read_bundle(s, text, err);
    if (st)
        heft_signature_close(s);
    else
        *out = s;
    return heft_error_end(err, st);
}
