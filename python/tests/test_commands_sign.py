"""Signatures and bills of materials from Python: sign, verify and sbom."""
import errno
import hashlib
import json
import os
import subprocess

import pytest

import heft
from command_files import f32, write_safetensors
from heft import _child


def openssl(*words):
    """Run openssl, which makes keys and certificates."""
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


@pytest.fixture(name="folder")
def _folder(tmp_path):
    """A folder with a key pair, another public key, and a signed model."""
    for name in ("key", "other"):
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out",
                tmp_path / f"{name}.pem")
        openssl("pkey", "-in", tmp_path / f"{name}.pem", "-pubout", "-out", tmp_path / f"{name}.pub")
    (tmp_path / "model").mkdir()
    write_safetensors(tmp_path / "model/a.safetensors", {"w": ("F32", [2], f32(1, 2))})
    (tmp_path / "model/config.json").write_text("{}")
    subprocess.run([_child.COMMAND, "sign", "--key", tmp_path / "key.pem", "--output",
                    tmp_path / "model.sig", tmp_path / "model"], check=True)
    return tmp_path


def verify(folder, **options):
    """Check the model of the folder."""
    return heft.verify(folder / "model", signature=folder / "model.sig", **options)


def test_a_signature_is_checked_with_a_public_key(folder):
    report = verify(folder, public_key=folder / "key.pub")
    assert report and report.findings == () and "signed with the key" in report.covers
    assert report.bytes_checked == sum(p.stat().st_size for p in (folder / "model").iterdir())
    assert verify(folder, public_key=str(folder / "key.pub")).ok
    assert isinstance(heft.verify([folder / "model"], signature=folder / "model.sig",
                                  public_key=folder / "key.pub"), list)


def test_another_key_and_changed_files_are_findings(folder):
    report = verify(folder, public_key=folder / "other.pub")
    assert not report and report.covers is None
    assert [f.rule for f in report.findings] == ["signature/key"]
    (folder / "model/config.json").write_text("[]")
    (folder / "model/new.py").write_text("")
    report = verify(folder, public_key=folder / "key.pub")
    assert not report
    assert {(f.rule, f.path) for f in report.findings} == {
        ("signature/changed", str(folder / "model/config.json")),
        ("signature/unlisted", str(folder / "model/new.py"))}


def test_a_signature_that_cannot_be_read_is_an_exception(folder):
    with pytest.raises(heft.Error, match="either --public-key or --ca"):
        verify(folder)
    with pytest.raises(OSError) as caught:
        verify(folder, public_key=folder / "none.pub")
    assert caught.value.filename == str(folder / "none.pub")
    (folder / "model.sig").write_text("{}")
    with pytest.raises(heft.FormatError):
        verify(folder, public_key=folder / "key.pub")


def test_key_of_a_nested_checkpoint_is_text(folder):
    with pytest.raises(heft.Error, match="nested"):
        heft.verify(folder / "model/a.safetensors", key="state_dict")
    with pytest.raises(TypeError):
        verify(folder, public_key=3)


# ---- signing ----

def test_sign_writes_a_signature_that_verify_accepts(folder):
    (folder / "model/more").mkdir()
    (folder / "model/more/notes.txt").write_text("not signed")
    done = heft.sign(folder / "model", key=folder / "key.pem", ignore=["more"], no_sync=True)
    assert done.file == folder / "model/model.sig" and done.file.exists()
    sizes = [(folder / "model" / n).stat().st_size for n in ("a.safetensors", "config.json")]
    assert (done.files, done.bytes) == (2, sum(sizes))
    report = heft.verify(folder / "model", signature=done.file, public_key=folder / "key.pub")
    assert report and "files in ignored paths are not: 1" in report.covers
    with pytest.raises(heft.Error, match="already exists"):
        heft.sign(folder / "model", key=folder / "key.pem")
    out = os.fsencode(folder) + b"/\xff.sig"
    assert os.fsencode(heft.sign(folder / "model", key=folder / "key.pem", output=out).file) == out
    one = heft.sign(folder / "model/a.safetensors", key=folder / "key.pem", output=folder / "1.sig")
    assert one.files == 1


def test_sign_with_certificates(folder):
    key, cert = folder / "key.pem", folder / "cert.pem"
    openssl("req", "-x509", "-key", folder / "other.pem", "-out", folder / "ca.pem", "-subj", "/CN=ca",
            "-days", "30", "-addext", "keyUsage=critical,keyCertSign")
    openssl("req", "-new", "-key", key, "-out", folder / "request", "-subj", "/CN=signer")
    (folder / "extensions").write_text("keyUsage=critical,digitalSignature\n"
                                       "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n")
    openssl("x509", "-req", "-in", folder / "request", "-out", cert, "-days", "20", "-CA",
            folder / "ca.pem", "-CAkey", folder / "other.pem", "-set_serial", "1", "-extfile",
            folder / "extensions")
    heft.sign(folder / "model", key=key, certificate=cert, chain=folder / "ca.pem",
              output=folder / "model.sig", force=True)
    report = verify(folder, ca=folder / "ca.pem")
    assert report and "trusted certificate" in report.covers
    assert verify(folder, ca=folder / "ca.pem", certificate=cert).ok
    report = verify(folder, ca=folder / "ca.pem", certificate=folder / "ca.pem")
    assert [f.rule for f in report.findings] == ["signature/certificate"]
    with pytest.raises(heft.Error, match="not the key of the certificate"):
        heft.sign(folder / "model", key=folder / "other.pem", certificate=cert,
                  output=folder / "x.sig")
    assert not (folder / "x.sig").exists()


def test_an_encrypted_key_takes_a_password_file_and_never_asks(folder):
    locked, password = folder / "locked.pem", folder / "password"
    password.write_text("secret word\n")
    openssl("ec", "-in", folder / "key.pem", "-aes256", "-passout", f"file:{password}", "-out",
            locked)
    with pytest.raises(heft.Error, match="--password-file"):
        heft.sign(folder / "model", key=locked, output=folder / "x.sig")
    heft.sign(folder / "model", key=locked, password_file=password, output=folder / "x.sig")
    assert heft.verify(folder / "model", signature=folder / "x.sig", public_key=folder / "key.pub")


def test_sign_without_a_key_or_a_model(folder):
    with pytest.raises(heft.Error, match="--key"):
        heft.sign(folder / "model")
    with pytest.raises(OSError) as caught:
        heft.sign(folder / "none", key=folder / "key.pem", output=folder / "x.sig")
    assert caught.value.errno == errno.ENOENT
    with pytest.raises(TypeError):
        heft.sign(folder / "model", key=3)


# ---- bills of materials ----

def test_sbom_is_the_document(folder):
    model = folder / "model/a.safetensors"
    bill = heft.sbom(model)
    assert bill.file == str(model) and json.loads(bill.text) == bill.document
    component = bill.document["metadata"]["component"]
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    assert component["hashes"] == [{"alg": "SHA-256", "content": digest}]
    with pytest.raises(heft.Error, match="nested"):
        heft.sbom(model, key="state_dict")


def test_sbom_is_written_to_the_output(folder):
    model, output = folder / "model/a.safetensors", folder / "bill.json"
    bill = heft.sbom(model, output=output)
    assert output.read_text() == bill.text == heft.sbom(model).text
    with pytest.raises(heft.Error, match="exists"):
        heft.sbom(model, output=output)
    assert heft.sbom(model, output=output, force=True) == bill


def test_sbom_refuses_other_files(folder):
    with pytest.raises(heft.FormatError):
        heft.sbom(folder / "model/config.json")
