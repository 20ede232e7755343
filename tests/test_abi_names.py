"""Whose a symbol is, by its name alone."""

from __future__ import annotations

import pytest

from stackfix.abi.names import is_of_another, is_standard_symbol, is_torch_library, is_torch_symbol, string_abi

NEW_STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"


@pytest.mark.parametrize("name", [
    "_ZN3c104cuda9SetDeviceEa", "_ZN3c10lsERSoRKNS_6DeviceE", "_ZN4c10d12ProcessGroupD2Ev", "_ZNK2at10TensorBase3useEv",
    "_ZNR2at1fEv", "_ZN5torch3jit6ModuleC1Ev", "_ZN6caffe28TypeMeta2idEv", "_ZTIN3c105ErrorE", "aoti_torch_new_tensor",
    "torch_new_stable_ivalue", "THPVariable_Wrap", "_ZNSt6vectorIN2at6TensorESaIS1_EE7reserveEm",
    "_Z17THPUtils_setErrorPKcz", "_ZN10THPPointerI7_objectE4freeEv", "_ZN9libkineto3apiEv", "_Z16getPyInterpreterv",
])
def test_torch(name: str) -> None:
    assert is_torch_symbol(name)
    assert not is_standard_symbol(name)


@pytest.mark.parametrize("name", [
    "_ZNKSs2atEm",                                          # a member of std::string, not the namespace
    f"_ZNK{NEW_STRING[1:-1]}2atEm",
    "_ZN13c10_look_alike4callEv",                           # 13 letters, not 3
    "_ZN2at6native57_GLOBAL__N__0d1aa3c0_9_Copy_cu_12345678_90124copyEv", "_Z27__device_stub__ZN2at6nativeEv",
    "_ZN2at51_INTERNAL_7c9aa_7_Some_cu_18_tmpxft_0000e1c0_000000001fEv",
    "_ZN2at6native31__nv_hdl_wrapper_tILb0ELb1ELb0EE1fEv", "mkl_blas_dgemm", "PyTorch_init", "at_exit", "_Z5clampi", "",
])
def test_not_torch(name: str) -> None:
    assert not is_torch_symbol(name)


@pytest.mark.parametrize(("name", "another"), [
    ("_ZN10torchaudio1fERKN2at6TensorE", True), ("_Z4nmsCRKN2at6TensorES2_d", True),
    ("_ZZN3ext1gERKN2at6TensorEE4once", True), ("_ZTIN3ext6ModuleIN2at6TensorEEE", True),
    ("_ZN2at6native1fEv", False), ("_ZNSt6vectorIN2at6TensorESaIS1_EE7reserveEm", False),
    ("_ZlsRSoRKN3c104TypeE", False), ("_ZTVN5torch3jit6ModuleE", False), ("_Z17THPUtils_setErrorPKcz", False),
    ("aoti_torch_new_tensor", False), ("_Z9999x", True), ("", False),
])
def test_of_another(name: str, *, another: bool) -> None:
    assert is_of_another(name) is another


@pytest.mark.parametrize("name", [
    "_ZNSs10_M_disposeEv", "_ZdlPvm", "_Znwm", "_ZSt24__throw_out_of_range_fmtPKcz",
    "_ZTVN10__cxxabiv117__class_type_infoE", "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev",
    "__cxa_throw",
    "_ZNRSt4pairIiiE4swapEv", "_ZTHSt3foo", "_ZThn16_NSdD1Ev", "_ZTv0_n24_NSoD0Ev", "__gxx_personality_v0",
    "__dynamic_cast", "_ZN9__gnu_cxx18__freeresEv", "_ZSt21ios_base_library_initv",
])
def test_standard(name: str) -> None:
    assert is_standard_symbol(name)
    assert not is_torch_symbol(name)


@pytest.mark.parametrize("name", ["_ZN3foo3barEv", "malloc", "_Z3newv", "__dynamic_caste", "_ZN2at1fEv", ""])
def test_not_standard(name: str) -> None:
    assert not is_standard_symbol(name)


@pytest.mark.parametrize(("soname", "own"), [
    ("libtorch.so", True), ("libtorch_cuda_cu.so", True), ("libc10_cuda.so", True), ("libshm.so", True),
    ("libcaffe2_nvrtc.so", True), ("libtorchaudio.so", False), ("libtorch.so.1", False), ("libc10d.so", False),
    ("mylibtorch.so", False),
])
def test_torch_library(soname: str, own: bool) -> None:
    assert is_torch_library(soname) is own


@pytest.mark.parametrize(("names", "abi"), [
    ((), None), (("_ZN2at1fEv", "aoti_torch_x"), None), (("_ZN2at1fESs", "_ZN2at1gEv"), "old"),
    ((f"_ZN2at1fE{NEW_STRING}", "_ZN2at1gEv"), "new"), (("_ZN2at1gB5cxx11Ev",), "new"),
    ((f"_ZN2at1fE{NEW_STRING}", "_ZN2at1fESs"), "both"),
])
def test_string_abi(names: tuple[str, ...], abi: str | None) -> None:
    assert string_abi(names) == abi
