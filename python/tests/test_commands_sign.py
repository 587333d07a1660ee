"""Signatures from Python: verify with the key or the certificates of a signature."""
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
    report = verify(folder, key=folder / "key.pub")
    assert report and report.findings == () and "signed with the key" in report.covers
    assert report.bytes_checked == sum(p.stat().st_size for p in (folder / "model").iterdir())
    assert verify(folder, key=str(folder / "key.pub")).ok
    assert isinstance(heft.verify([folder / "model"], signature=folder / "model.sig",
                                  key=folder / "key.pub"), list)


def test_another_key_and_changed_files_are_findings(folder):
    report = verify(folder, key=folder / "other.pub")
    assert not report and report.covers is None
    assert [f.rule for f in report.findings] == ["signature/key"]
    (folder / "model/config.json").write_text("[]")
    (folder / "model/new.py").write_text("")
    report = verify(folder, key=folder / "key.pub")
    assert not report
    assert {(f.rule, f.path) for f in report.findings} == {
        ("signature/changed", str(folder / "model/config.json")),
        ("signature/unlisted", str(folder / "model/new.py"))}


def test_a_signature_that_cannot_be_read_is_an_exception(folder):
    with pytest.raises(heft.Error, match="either --key or --ca"):
        verify(folder)
    with pytest.raises(OSError) as caught:
        verify(folder, key=folder / "none.pub")
    assert caught.value.filename == str(folder / "none.pub")
    (folder / "model.sig").write_text("{}")
    with pytest.raises(heft.FormatError):
        verify(folder, key=folder / "key.pub")


def test_key_of_a_nested_checkpoint_is_text(folder):
    with pytest.raises(heft.Error, match="nested"):
        heft.verify(folder / "model/a.safetensors", key="state_dict")
    with pytest.raises(TypeError):
        verify(folder, key=3)
